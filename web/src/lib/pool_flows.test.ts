import { describe, expect, it } from 'vitest';
import type { Lun, Pool } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import type { Below } from './lying.ts';
import { busyByPool, poolFlows } from './pool_flows.ts';

const part = (name: string, of: Partial<Below>): Below => ({ id: name, name, called: name, state: 'good', word: '', says: '', members: [], data: true, journal: false, ...of });
const pool = (of: Partial<Pool> = {}) => ({ name: 'fast', ...of }) as Pool;
const lun = (name: string, ...members: number[]) => ({ name, pool: 'fast', members }) as Lun;
const moment = (rates: Record<string, number>) => ({ luns: new Map(Object.entries(rates).map(([name, n]) => [name, { readBytes: n, writeBytes: n }])) }) as unknown as Moment;
const flows = (parts: Below[], luns: Lun[], rates: Record<string, number>, of: Partial<Pool> = {}) => {
  const at = moment(rates);
  return [...poolFlows(pool(of), parts, busyByPool(luns, at).get('fast') ?? [], at).values()];
};

describe('what flows to the disks of a pool', () => {
  const two = [part('m0', { members: [0] }), part('m1', { members: [1] })];
  it('is all of it where there is one', () => {
    expect(flows([part('sda', { members: [0, 1] })], [lun('a', 0, 1)], { a: 50 })).toEqual([100]);
  });
  it('is known of members that have whole LUNs', () => {
    expect(flows(two, [lun('a', 0), lun('b', 1), lun('idle', 0, 1)], { a: 50, b: 5 })).toEqual([100, 10]);
  });
  it('is not known, and not nothing, of members that share a busy LUN', () => {
    expect(flows(two, [lun('a', 0, 1), lun('b', 1)], { a: 50, b: 5 })).toEqual([undefined, undefined]);
    expect(flows([...two, part('m2', { members: [2] })], [lun('a', 0, 1)], { a: 50 })).toEqual([undefined, undefined, 0]);
    expect(flows([part('sda', {}), part('sdb', {})], [lun('a')], { a: 50 })).toEqual([undefined, undefined]);
  });
  it('is not known where a journal is on a disk of its own, also while it is destaged only', () => {
    const split = [part('sda', {}), part('sdj', { data: false, journal: true })];
    expect(flows(split, [lun('a')], { a: 50 })).toEqual([undefined, undefined]);
    expect(flows(split, [lun('a')], {}, { journal: { destaged_bytes_per_second: 9 } as Pool['journal'] & object })).toEqual([undefined, undefined]);
    expect(flows(split, [lun('a')], {})).toEqual([0, 0]);
  });
});
