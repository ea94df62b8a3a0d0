import { describe, expect, it } from 'vitest';
import type { JournalScrub, Scrub } from '../api/types.ts';
import { findings, scrubEvery, daysSaid, scrubSaid, segments, whenSaid } from './scrubs.ts';

const scrub = (of: Partial<Scrub>) => ({ state: 'finished', unreadable_blocks: 0, mismatched_blocks: 0, map_pages: 0, bytes_per_second: 0, ...of }) as Scrub;

describe('a scrub', () => {
  it('is asked for often while it runs, and seldom else', () => {
    expect([scrub({ state: 'running' }), scrub({}), undefined].map(scrubEvery)).toEqual([3_000, 30_000, 30_000]);
  });
  it('says what it found before how it goes on', () => {
    const at = { done_bytes: 399, total_bytes: 1000 };
    expect(scrubSaid(scrub({ mismatched_blocks: 2 }))).toEqual(['bad', '2 findings']);
    expect(scrubSaid(scrub({ ...at, state: 'running', mismatched_blocks: 2, bytes_per_second: 1024 }))).toEqual(['bad', '2 findings so far; at 39 %, 1 KiB/s']);
    expect(scrubSaid(scrub({ ...at, state: 'given_up', unreadable_blocks: 1, reason: 'the map is gone' }))).toEqual(['bad', '1 finding so far; stopped by an error at 39 %: the map is gone']);
  });
  it('says in each of its states how far it is, and what it waits for', () => {
    const at = (of: Partial<Scrub>) => scrub({ done_bytes: 399, total_bytes: 1000, ...of });
    expect([undefined, at({}), at({ state: 'stopped' }), at({ state: 'given_up', reason: 'no map' })].map((one) => scrubSaid(one))).toEqual([
      ['off', 'never scrubbed'], ['good', 'nothing found'], ['off', 'stopped at 39 %: it goes on from there'], ['warn', 'stopped by an error at 39 %: no map'],
    ]);
    expect(scrubSaid(undefined, { scheduled: true })).toEqual(['off', 'never scrubbed: it is due']);
    const running = at({ state: 'running' });
    expect([running, { ...running, yields: true }, { ...running, bytes_per_second: 2048, seconds_left: 60, yields: true }].map((one) => scrubSaid(one)[1])).toEqual([
      'at 39 %', 'at 39 %, waits: hosts come first', 'at 39 %, 2 KiB/s, 1 min 0 s left, gives way to hosts',
    ]);
    expect(scrubSaid(running, { offline: true })).toEqual(['warn', 'paused at 39 %: the LUN is offline, it goes on when that is over']);
    // Of no bytes all are read.
    expect(scrubSaid(scrub({ state: 'stopped', done_bytes: 0, total_bytes: 0 }))[1]).toMatch(/^stopped at 0 %/);
  });
  it('says by how much the next one is late', () => {
    const [now, day] = [Date.parse('2026-11-27T12:00:00Z'), 86_400_000];
    const next = (days: number) => whenSaid(scrub({ started: '2026-11-01T00:00:00Z', ended: '2026-11-01T01:00:00Z', next: new Date(now - days * day).toISOString() }), now);
    expect(next(3)).toMatch(/^read until .*, the next is late by 3 d 0 h$/);
    // One after the other: it has its turn.
    expect(next(0.5)).toMatch(/^read until .*, next /);
    expect(whenSaid(scrub({ started: '2026-11-01T00:00:00Z' }), now)).toMatch(/^since /);
  });
  const journal = (of: Partial<JournalScrub>): JournalScrub => ({ batches: 1, changes: 1, damaged_changes: 0, damaged_superblocks: 0, damaged_checkpoints: 0, lost_blocks: 0, ...of });
  it('that found something in the journal only has found something', () => {
    expect(scrubSaid(scrub({ journal: journal({}) }))).toEqual(['good', 'nothing found']);
    expect(scrubSaid(scrub({ journal: journal({ damaged_superblocks: 1 }) }))).toEqual(['bad', '1 finding']);
    expect(scrubSaid(scrub({ journal: journal({ problem: 'gone' }) }))).toEqual(['bad', '1 finding']);
    expect(findings(scrub({ journal: journal({ lost_blocks: 3, damaged_checkpoints: 1 }) })).map((row) => [row.kind, row.what])).toEqual([['journal', '3 lost blocks of this LUN'], ['journal', '1 damaged checkpoint']]);
  });
  it('lists all that it found, by where it is, with what to do', () => {
    const found = findings(scrub({
      unreadable_blocks: 1, mismatched_blocks: 12, map_pages: 2, metadata: ['the changed-block map of vm1 is damaged'],
      places: [{ lba: 900, blocks: 2, damage: 'mismatch' }, { lba: 7, blocks: 1, damage: 'unreadable' }],
    }));
    expect(found.map((row) => [row.kind, row.lba, row.blocks])).toEqual([
      ['cannot be read', 7, 1], ['not what was written', 900, 2], ['not what was written', undefined, 10], ['map of checksums', undefined, undefined], ['metadata', undefined, undefined],
    ]);
    expect(found.at(-1)?.what).toBe('the changed-block map of vm1 is damaged');
    expect(found.every((row) => row.next.includes('heck'))).toBe(true);
    expect(findings(scrub({}))).toEqual([]);
  });
  it('is on its map from the begin of the LUN to its end', () => {
    const half = scrub({ total_bytes: 10 * 512, done_bytes: 6 * 512, places: [{ lba: 3, blocks: 2, damage: 'unreadable' }] });
    expect(segments(half, 512).map(({ lba, blocks, word }) => [lba, blocks, word])).toEqual([[0, 3, 'read, nothing found'], [3, 2, 'cannot be read'], [5, 1, 'read, nothing found'], [6, 4, 'not read yet']]);
    expect(segments(scrub({ total_bytes: 5120, done_bytes: 5120, places: [] }), 512).map((one) => one.blocks)).toEqual([10]);
  });
  it('have a schedule, or none, in words', () => {
    expect([undefined, '1', '30'].map(daysSaid)).toEqual([
      'No schedule: LUNs are scrubbed when somebody asks.',
      'Each LUN is scrubbed every day by itself, one after the other.',
      'Each LUN is scrubbed every 30 days by itself, one after the other.',
    ]);
  });
});
