import { describe, expect, it } from 'vitest';
import type { Me } from '../api/types.ts';
import { entry } from './entry.svelte.ts';

describe('a session that is over', () => {
  it('is said also where several requests learn of it at once', () => {
    entry.ask();
    expect(entry.ended).toBe(false);
    entry.who = { name: 'ada', role: 'admin' } as Me;
    entry.ask();
    entry.ask();
    expect([entry.ended, entry.wanted, entry.who]).toEqual([true, true, undefined]);
  });
});
