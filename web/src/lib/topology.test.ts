import { describe, expect, it } from 'vitest';
import type { Disk, Grant, Host, Lun, Pool, Session, Status } from '../api/types.ts';
import { address, DRAWN, topology, type Facts } from './topology.ts';
import { singlePath, verdict } from './verdict.ts';
import { whatIf } from './whatif.ts';

const session = (id: number, host: string, from: string, portal: string) =>
  ({ id, host, from, portal, target: 't', since: '' }) as Session;
const status = {
  node: 'san', health: 'ok', problems: [], generation: 1, pools: [],
  counts: { luns: 2, hosts: 3 },
  portals: [{ group: 'a', tag: 1, address: '10.0.0.1:3260' }, { group: 'a', tag: 1, address: '10.0.1.1:3260' }],
} as unknown as Status;
const facts: Facts = {
  status,
  hosts: [{ name: 'b', iqn: [], sessions: 2 }, { name: 'a', iqn: [], sessions: 1 }, { name: 'c', iqn: [], sessions: 0 }] as Host[],
  sessions: [
    session(1, 'a', '10.0.0.7:50', '10.0.0.1:3260'),
    session(2, 'b', '10.0.0.8:50', '10.0.0.1:3260'),
    session(3, 'b', '10.0.1.8:51', '10.0.1.1:3260'),
  ],
  luns: [
    { name: 'vm2', state: 'online', pool: 'slow', grants: ['b'], backing: 'pool slow' },
    { name: 'vm1', state: 'online', pool: 'fast', grants: ['a', 'b'], backing: 'pool fast' },
  ] as Lun[],
  pools: [{ name: 'fast', state: 'ok' }, { name: 'slow', state: 'low' }] as Pool[],
  grants: [{ host: 'a', lun: 'vm1' }, { host: 'b', lun: 'vm1' }, { host: 'b', lun: 'vm2' }, { host: 'c', lun: 'vm2' }] as Grant[],
};
const point = (id: string) => {
  const found = topology(facts).points.find((one) => one.id === id);
  if (!found) throw new Error(`no ${id}`);
  return found;
};

describe('the topology', () => {
  it('keeps its order, whatever order it is given in', () => {
    const names = (of: Facts) => topology(of).points.map((one) => one.id);
    const turned = { ...facts, hosts: [...facts.hosts].reverse(), luns: [...facts.luns].reverse(), sessions: [...facts.sessions].reverse() };
    expect(names(turned)).toEqual(names(facts));
  });
  it('says in words what is wrong', () => {
    const words = Object.fromEntries(topology(facts).points.map((one) => [one.name, `${one.state}: ${one.word}`]));
    expect(words).toMatchObject({ a: 'warn: single path', b: 'good: 2 paths', c: 'off: not connected', slow: 'warn: nearly full' });
  });
  it('shows two sessions on one route as the mistake that they are', () => {
    const doubled = { ...facts, sessions: [...facts.sessions, session(4, 'a', '10.0.0.7:60', '10.0.0.1:3260')] };
    const edge = topology(doubled).edges.find((one) => one.id.startsWith('port:a') && one.to === 'portal:10.0.0.1:3260');
    expect(edge?.state).toBe('warn');
    expect(singlePath(status, doubled.sessions)).toEqual(['a']);
  });
  it('draws no more LUNs than can be seen, and finds the others', () => {
    const many = { ...facts, luns: Array.from({ length: 1000 }, (_, i) => ({ ...facts.luns[0], name: `lun${i}` }) as Lun) };
    expect(topology(many)).toMatchObject({ hidden: 1000 - DRAWN });
    expect(topology(many, 'lun999').points.filter((one) => one.kind === 'lun').map((one) => one.name)).toEqual(['lun999']);
  });
  it('knows an address without its port', () => {
    expect(['10.0.0.7:50', '[fd00::1]:50', 'fd00::1'].map(address)).toEqual(['10.0.0.7', '[fd00::1]', 'fd00::1']);
  });
});

describe('what if', () => {
  it('a portal is lost: who has another path keeps his LUNs', () => {
    const loss = whatIf(facts, point('portal:10.0.0.1:3260'));
    expect(loss.hosts).toEqual([
      { name: 'a', luns: ['vm1'], pathsLeft: 0, pathsLost: 1 },
      { name: 'b', luns: [], pathsLeft: 1, pathsLost: 1 },
    ]);
    expect(loss.harmless).toBe(false);
    expect(loss.verdict).toBe('Without portal 10.0.0.1:3260, 1 host would lose 1 LUN.');
    expect(loss.lost.has('host:a')).toBe(true);
  });
  it('a port of a host with two is lost: nobody loses a LUN', () => {
    expect(whatIf(facts, point('port:b\n10.0.1.8'))).toMatchObject({ harmless: true });
  });
  it('a pool is lost: its LUNs, for all who have them, connected or not', () => {
    expect(whatIf(facts, point('pool:slow')).hosts.map((host) => [host.name, host.luns])).toEqual([['b', ['vm2']], ['c', ['vm2']]]);
  });
});

describe('disks below pools', () => {
  const disk = (id: string, ...used_by: string[]) => ({ id, names: [id], health: 'well', smart: 'read', facts: {}, used_by }) as Disk;
  const [first = ''] = facts.pools.map((pool) => pool.name);
  const lostWith = (disks: Disk[]) => {
    const some = { ...facts, disks };
    return whatIf(some, topology(some).points.find((one) => one.id === 'disk:sda')!);
  };

  it('take with them what lies on them alone', () => {
    const loss = lostWith([disk('sda', `pool ${first}`), disk('sdb', 'state directory')]);
    expect(loss.lost).toContain(`pool:${first}`);
    expect(loss.hosts).toEqual(whatIf(facts, point(`pool:${first}`)).hosts);
    expect(topology({ ...facts, disks: [disk('sdb', 'state directory')] }).points.some((one) => one.kind === 'disk')).toBe(false);
  });
  it('of several below a pool promise nothing', () => {
    const loss = lostWith([disk('sda', `pool ${first}`), disk('sdb', `pool ${first}`)]);
    expect(loss.harmless).toBe(false);
    expect(loss.verdict).toContain('one of several disks');
  });
});

describe('the verdict', () => {
  it('says what to do first', () => {
    expect(verdict(status, facts.sessions)).toMatchObject({ state: 'warn', todo: [{ href: '/hosts/a' }] });
    const good = verdict(status, facts.sessions.slice(1));
    expect(good).toEqual({ state: 'good', sentence: 'Everything serves. 1 host connected, with two paths or more. Nothing to do.', todo: [] });
    expect(verdict({ ...status, health: 'degraded', problems: ['x is gone'] }, []).todo).toEqual([{ text: 'x is gone' }]);
  });
});
