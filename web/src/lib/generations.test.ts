import { describe, expect, it } from 'vitest';
import type { Kept, Orphan } from '../api/types.ts';
import { adopt, keptSaid, olderThan, orphanSaid, rollBack } from './generations.ts';

const kept = (generation: number, of: Partial<Kept> = {}): Kept => ({ generation, written: '', in_force: false, luns: 0, removed: 0, targets: 0, hosts: 0, grants: 0, ...of });
const orphan: Orphan = { pool: 'fast', naa: '6aa', size_bytes: 1, has_checksums: false };

describe('a kept generation', () => {
  it('is gone back to by its name, as the command line does', () => {
    expect(rollBack(12)).toMatchObject({ method: 'POST', path: 'generations/12/rollback', cli: 'causeway state rollback 12', typed: 'generation 12', plans: true });
  });
  it('is compared with the newest before it that can be read', () => {
    const all = [kept(9, { in_force: true }), kept(8, { problem: 'damaged' }), kept(5), kept(2)];
    expect([9, 5, 2].map((one) => olderThan(all, one)?.generation)).toEqual([5, 2, undefined]);
    expect(all.slice(0, 3).map(keptSaid)).toEqual([['good', 'in force'], ['bad', 'damaged'], ['off', 'kept']]);
  });
});

describe('a LUN that no object names', () => {
  it('is adopted by what its file is named after, with a name and the blocks that hosts saw', () => {
    expect(adopt(orphan, '', undefined)).toMatchObject({ path: 'orphans/adopt', body: { files: ['6aa'], pool: 'fast' }, cli: 'causeway lun adopt 6aa --pool fast' });
    expect(adopt({ ...orphan, name: 'vm1' }, 'vm2', 4096)).toMatchObject({ title: 'Adopt vm1', body: { files: ['6aa'], pool: 'fast', name: 'vm2', block_size: 4096 }, cli: 'causeway lun adopt 6aa --pool fast --name vm2 --block-size 4096' });
  });
  it('says whether it can be', () => {
    expect([orphan, { ...orphan, removed: true }, { ...orphan, problem: 'no record' }, { ...orphan, is_foreign: true }].map((one) => orphanSaid(one)[1])).toEqual([
      'can be adopted', 'was deleted, can be adopted', 'no record', 'never was a LUN here',
    ]);
  });
});
