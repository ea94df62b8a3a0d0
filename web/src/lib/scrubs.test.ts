import { describe, expect, it } from 'vitest';
import type { Scrub } from '../api/types.ts';
import { scrubEvery, daysSaid, scrubSaid } from './scrubs.ts';

const scrub = (of: Partial<Scrub>) => ({ state: 'finished', unreadable_blocks: 0, mismatched_blocks: 0, map_pages: 0, bytes_per_second: 0, ...of }) as Scrub;

describe('a scrub', () => {
  it('is asked for often while it runs, and seldom else', () => {
    expect([scrub({ state: 'running' }), scrub({}), undefined].map(scrubEvery)).toEqual([3_000, 30_000, 30_000]);
  });
  it('says what it found before how it goes on', () => {
    expect(scrubSaid(scrub({ state: 'running', mismatched_blocks: 2 }))).toEqual(['bad', '2 findings']);
    expect(scrubSaid(scrub({ state: 'stopped' }))).toEqual(['off', 'stopped']);
    expect(scrubSaid(undefined)).toEqual(['off', 'never scrubbed']);
  });
  it('have a schedule, or none, in words', () => {
    expect([undefined, '1', '30'].map(daysSaid)).toEqual([
      'No schedule: LUNs are scrubbed when somebody asks.',
      'Each LUN is scrubbed every day by itself, one after the other.',
      'Each LUN is scrubbed every 30 days by itself, one after the other.',
    ]);
  });
});
