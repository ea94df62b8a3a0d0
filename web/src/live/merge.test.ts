import { describe, expect, it } from 'vitest';
import type { Activity, LunActivity } from '../api/types.ts';
import { merged } from './merge.ts';

const op = { ops: 0, bytes: 0, latency: {} };
const lun = (name: string, ops = 0): LunActivity => ({ name, online: true, in_flight: 0, read: { ...op, ops }, write: op, other_ops: 0 });
const before: Activity = { node: 'n', started: 's', at_us: 1, cores: [], luns: [lun('a'), lun('c')], sessions: [] };

describe('a change of what the node does', () => {
  it('replaces what changed, adds what came in its place, and takes away what is gone', () => {
    const after = merged(before, { at_us: 2, cores: [], luns: [lun('b', 1), lun('c', 5)], sessions: [], luns_gone: ['a'] });
    expect(after.luns.map((one) => [one.name, one.read.ops])).toEqual([['b', 1], ['c', 5]]);
    expect(after.at_us).toBe(2);
  });

  it('leaves what did not change as it is', () => {
    const after = merged(before, { at_us: 2, cores: [], luns: [], sessions: [] });
    expect(after.luns).toBe(before.luns);
    const one = merged(before, { at_us: 2, cores: [], luns: [lun('c', 5)], sessions: [] });
    expect(one.luns[0]).toBe(before.luns[0]);
  });
});
