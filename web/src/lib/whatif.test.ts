import { describe, expect, it } from 'vitest';
import type { Grant, Host, Lun, Pool, Session, Status } from '../api/types.ts';
import { topology, type Facts } from './topology.ts';
import { whatIf } from './whatif.ts';

const PORTALS = ['10.0.0.1:3260', '10.0.1.1:3260'];
const status = {
  node: 'san', health: 'ok', problems: [], generation: 1, pools: [], counts: { luns: 3, hosts: 1 },
  portals: PORTALS.map((address, i) => ({ group: 'a', tag: i, address })),
} as unknown as Status;
const session = (id: number, target: string, portal: string | undefined, ...luns: string[]) =>
  ({ id, host: 'h', initiator: 'iqn.h', from: `10.0.${id}.7:50`, portal, target, since: '', luns: luns.map((lun, lun_id) => ({ lun, lun_id })) }) as unknown as Session;
/** One host on two targets: to `left` over both portals, to `right` over the second alone. */
const facts: Facts = {
  status,
  hosts: [{ name: 'h', iqn: [], sessions: 3, redundancy: { connected: true, least_paths: 1 } }] as unknown as Host[],
  sessions: [session(1, 'left', PORTALS[0], 'one'), session(2, 'left', PORTALS[1], 'one'), session(3, 'right', PORTALS[1], 'two')],
  luns: ['one', 'two', 'three'].map((name) => ({ name, state: 'online', pool: 'p', grants: ['h'], backing: 'pool p' })) as Lun[],
  pools: [{ name: 'p', state: 'ok' }] as Pool[],
  grants: [{ host: 'h', target: 'left', lun: 'one' }, { host: 'h', target: 'right', lun: 'two' }, { host: 'h', target: 'right', lun: 'three' }] as Grant[],
};
const without = (name: string) => {
  const { points } = topology(facts);
  return whatIf(facts, points.find((one) => one.id === name) ?? expect.fail(`no ${name}`));
};

describe('a host on two targets', () => {
  it('loses the LUN that it reaches over the lost portal alone, and keeps the other', () => {
    const loss = without(`portal:${PORTALS[1]}`);
    expect(loss.verdict).toBe(`Without portal ${PORTALS[1]}, 1 host would lose 1 LUN.`);
    // Three is granted, and was not reached before either: nothing takes it away.
    expect(loss.hosts).toEqual([{ name: 'h', host: 'h', luns: ['two'], pathsLeft: 0, pathsLost: 1 }]);
    expect(loss.harmless).toBe(false);
    expect(loss.lost.has('host:h')).toBe(false);
  });
  it('keeps all where each LUN has a path left, and is told of the one that has the fewest', () => {
    const loss = without(`portal:${PORTALS[0]}`);
    expect(loss.verdict).toBe(`Without portal ${PORTALS[0]}, no host would lose a LUN: other paths remain.`);
    expect(loss.hosts).toEqual([{ name: 'h', host: 'h', luns: [], pathsLeft: 1, pathsLost: 1 }]);
  });
  it('has one path over two sessions on one route', () => {
    const twice = { ...facts, sessions: [...facts.sessions, { ...session(1, 'left', PORTALS[0], 'one'), id: 4 }] };
    const { points } = topology(twice);
    const loss = whatIf(twice, points.find((one) => one.id === `portal:${PORTALS[1]}`) ?? expect.fail('no portal'));
    expect(loss.hosts).toEqual([{ name: 'h', host: 'h', luns: ['two'], pathsLeft: 0, pathsLost: 1 }]);
    const other = whatIf(twice, points.find((one) => one.id === `portal:${PORTALS[0]}`) ?? expect.fail('no portal'));
    expect(other.hosts).toEqual([{ name: 'h', host: 'h', luns: [], pathsLeft: 1, pathsLost: 1 }]);
  });
});

describe('two machines in one host', () => {
  /** Each over a portal of its own: together they look like two paths to the LUN, and each has one. */
  const [one, two] = [0, 1].map((i) => ({ ...session(i + 1, 'left', PORTALS[i], 'one'), initiator: `iqn.m${i + 1}` }));
  const apart: Facts = { ...facts, sessions: [one!, two!] };
  const lossOf = (of: Facts, name: string) => whatIf(of, topology(of).points.find((point) => point.id === name) ?? expect.fail(`no ${name}`));

  it('are no way to a LUN for one another: who would lose it is named', () => {
    const loss = lossOf(apart, `portal:${PORTALS[0]}`);
    expect(loss).toMatchObject({ harmless: false, verdict: `Without portal ${PORTALS[0]}, 1 initiator of 1 host would lose 1 LUN.` });
    expect(loss.hosts).toEqual([{ name: 'iqn.m1 of h', host: 'h', luns: ['one'], pathsLeft: 0, pathsLost: 1 }]);
    expect(loss.lost.has('host:h')).toBe(false);
    expect(lossOf(apart, 'host:h').verdict).toBe('Without host h, 2 initiators of 1 host would lose 1 LUN.');
    expect(lossOf({ ...apart, sessions: [one!, { ...two!, initiator: 'iqn.m1' }] }, `portal:${PORTALS[0]}`).harmless).toBe(true);
  });
  it('whose NICs have one name have two NICs, and no path that is doubled', () => {
    const nic = { name: 'lo', planned: false };
    const same: Facts = { ...apart, sessions: [{ ...one!, nic }, { ...two!, portal: one!.portal, nic }] };
    const drawn = topology(same);
    expect(drawn.mistakes).toEqual([]);
    expect(drawn.points.filter((point) => point.kind === 'port').map((point) => point.called)).toEqual(['NIC lo of iqn.m1 of h', 'NIC lo of iqn.m2 of h']);
    // One machine that is logged in twice is a mistake.
    const twice = topology({ ...same, sessions: same.sessions.map((some) => ({ ...some, initiator: 'iqn.m1' })) });
    expect(twice.mistakes.map((found) => [found.wrong, found.host])).toEqual([['doubled', 'h']]);
    const three = topology({ ...same, sessions: [...same.sessions, { ...same.sessions[0]!, id: 3 }] });
    expect(three.mistakes.map((found) => found.host)).toEqual(['iqn.m1 of h']);
  });
});
