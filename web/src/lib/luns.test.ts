import { describe, expect, it } from 'vitest';
import type { Lun } from '../api/types.ts';
import { integritySaid, lunSaid, lunState, worstFirst } from './luns.ts';

const lun = (of: Partial<Lun>) => ({ name: 'vm1', state: 'online', grants: [], ...of }) as Lun;
const scrubbed = lun({ name: 'vm2', findings: ["its pool's journal has 1 damaged superblocks: check its device"] });
const stalled = lun({ name: 'vm3', stalled: { seconds: 90, operations: 4 } });

describe('the state of a LUN', () => {
  it('is bad where its last scrub found something, also without checksums', () => {
    expect([lunState(scrubbed), lunSaid(scrubbed)]).toEqual(['bad', "its pool's journal has 1 damaged superblocks: check its device"]);
    expect([lunState(lun({})), lunSaid(lun({}))]).toEqual(['good', 'online']);
  });
  it('is bad where its storage does not answer', () => {
    expect([lunState(stalled), lunSaid(stalled)]).toEqual(['bad', 'its storage has not answered for 1 min 30 s']);
  });
  it('makes the headline of all of them', () => {
    expect(integritySaid([lun({})])).toEqual(['good', 'No damage is known']);
    expect(integritySaid([lun({}), scrubbed, stalled])).toEqual(['bad', '1 LUN has known damage: vm2']);
    expect(integritySaid([stalled])).toEqual(['warn', 'No damage is known, and 1 LUN cannot be read: vm3']);
    expect([lun({}), scrubbed].sort(worstFirst).map((one) => one.name)).toEqual(['vm2', 'vm1']);
  });
});
