import { describe, expect, it } from 'vitest';
import type { Grant, Session, Status } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { standingBy } from './mistakes.ts';
import { idsOf, routeOf, rowsOf, sessionsBy, slowestFirst } from './sessions.ts';
import { topology, type Facts } from './topology.ts';

const nic = (name: string) => ({ name, planned: true });
const session = (id: number, from: string, portal: string, name?: string) =>
  ({ id, host: 'h', initiator: 'iqn.h', from: `${from}:50`, portal, target: 't', since: '', luns: [], ...(name ? { nic: nic(name) } : {}) }) as unknown as Session;
const busy = 1e6;
const doing = (...all: [id: number, bytes: number][]) =>
  ({ sessions: new Map(all.map(([id, bytesIn]) => [id, { bytesIn, bytesOut: 0, commands: bytesIn / 4096 }])), luns: new Map() }) as unknown as Moment;
const two = [session(1, 'a', 'p', 'eth0'), session(2, 'b', 'q', 'eth1')];

describe('sessions', () => {
  it('have the slowest first, and those that do nothing last', () => {
    const some = [...two, session(3, 'c', 'p'), session(4, 'd', 'p')];
    expect(slowestFirst(some, doing([1, busy], [2, busy], [4, busy]), new Map([[1, 200], [2, 9_000]])).map(({ session }) => session.id)).toEqual([2, 1, 4, 3]);
  });
  it('say which way they go', () => expect([two[0]!, session(3, '10.0.0.7', 'p')].map(routeOf)).toEqual(['eth0 (a) → p', '10.0.0.7 → p']));
  it('are of a grant where host, target and LUN are: a LUN over two targets is counted at each by itself', () => {
    const [one, two] = [1, 2].map((id) => ({ ...session(id, 'a', 'p'), luns: [{ lun: 'vm1', lun_id: 0, read_only: false }] }));
    const all = [one!, { ...two!, target: 'u' }, { ...two!, id: 3, host: 'other' }, { ...one!, id: 4, luns: [] }];
    const by = (target: string) => sessionsBy({ host: 'h', target, lun: 'vm1' } as Grant, all).map((found) => found.id);
    expect([by('t'), by('u'), by('v')]).toEqual([[1], [2], []]);
  });
  it('stand in the address', () => expect(idsOf('3,17,x,-1,')).toEqual([3, 17]));
  it('are shown as many as the address says', () => expect(['', '50', '200', 'x', '1e400'].map((text) => rowsOf(text, 100))).toEqual([100, 100, 200, 100, 100]));
  it('stand by where the host plans its paths, and others to the same target work', () => {
    const ids = (some: Session[], moment: Moment) => [...standingBy(some, moment)];
    expect(ids(two, doing([1, busy], [2, 100]))).toEqual([2]);
    // Nothing is done at all: any of them may be the active one.
    expect(ids(two, doing([1, 0], [2, 0]))).toEqual([]);
    // Little is done, and by both.
    expect(ids(two, doing([1, 20_000], [2, 13_000]))).toEqual([]);
    expect(ids([two[0]!, session(2, 'b', 'q')], doing([1, busy], [2, 0]))).toEqual([]);
    expect(ids([two[0]!, { ...two[1]!, target: 'u' }], doing([1, busy], [2, 0]))).toEqual([]);
    // Another machine of the host, which is idle.
    expect(ids([two[0]!, { ...two[1]!, initiator: 'iqn.i' }], doing([1, busy], [2, 0]))).toEqual([]);
  });
});

describe('lines of the map', () => {
  const facts = {
    status: { node: 'san', health: 'ok', portals: [{ group: 'g', tag: 1, address: 'p' }, { group: 'g', tag: 1, address: 'q' }] } as unknown as Status,
    hosts: [], sessions: two, luns: [], pools: [], grants: [], moment: doing([1, busy], [2, 0]), p99: new Map([[1, 300]]),
  } as Facts;
  const line = (from: string, to: string) => topology(facts).edges.find((edge) => edge.from === from && edge.to === to);

  it('have their sessions and the longest p99 of these', () => {
    expect(line('port:h\neth0\niqn.h', 'portal:p')).toMatchObject({ sessions: [1], p99: 300, standby: false });
    expect(line('portal:p', 'node:san')).toMatchObject({ sessions: [1], p99: 300 });
    expect(topology(facts).edges.find((edge) => edge.from === 'host:h' && edge.to === 'port:h\neth0\niqn.h')?.sessions).toEqual([1]);
  });
  it('of paths that stand by are drawn so, and say it', () => {
    expect(line('port:h\neth1\niqn.h', 'portal:q')).toMatchObject({ standby: true, says: 'session 2 stands by' });
    expect(line('portal:q', 'node:san')).toMatchObject({ standby: true });
  });
});
