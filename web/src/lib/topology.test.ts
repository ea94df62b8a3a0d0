import { describe, expect, it } from 'vitest';
import type { Disk, Grant, Host, Lun, Pool, Session, Status, Target } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { address, mistakes } from './mistakes.ts';
import { DRAWN, topology, type Facts } from './topology.ts';
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

describe('paths that are a mistake', () => {
  const BUSY = 1e6;
  /** Paths of one host, as port>portal; each carries so many bytes a second. */
  const paths = (...routes: string[]) => routes.map((route, i) => {
    const [port, portal] = route.split('>');
    return session(i + 1, 'm', `10.0.0.${port}:${50 + i}`, `10.0.0.10${portal}:3260`);
  });
  const carrying = (...bytes: number[]) => ({ sessions: new Map(bytes.map((bytesIn, i) => [i + 1, { bytesIn, bytesOut: 0, commands: 0, p99: undefined }])), luns: new Map() }) as unknown as Moment;
  const wrong = (routes: string[], bytes: number[] = routes.map(() => BUSY)) => mistakes(paths(...routes), carrying(...bytes)).map((one) => [one.wrong, ...one.sessions]);
  const MESH = ['1>1', '1>2', '2>1', '2>2'];

  it('are those of a mesh, and of it the ones that cross', () => {
    expect(wrong(MESH)).toEqual([['crosses', 1, 2, 3, 4]]);
    expect(wrong(['1>1', '1>2', '2>2'])).toEqual([['crosses', 2]]);
    expect(wrong([...MESH, '3>3'])).toEqual([['crosses', 1, 2, 3, 4]]);
  });
  it('are not: pairs, one portal only, a host with one port, a fan of a faster port', () => {
    for (const routes of [['1>1'], ['1>1', '2>2'], ['1>1', '2>1', '3>1'], ['1>1', '1>2'], ['1>1', '1>2', '2>3', '2>4']]) expect(wrong(routes), routes.join(' ')).toEqual([]);
  });
  it('are not: paths of a mesh that stand by, or a host of which nothing is known yet', () => {
    expect(wrong(MESH, [BUSY, 0, 0, BUSY])).toEqual([]);
    expect(wrong(MESH, [BUSY * 100, BUSY, BUSY, BUSY * 100])).toEqual([]);
    expect(wrong(MESH, [96, 96, 96, 96])).toEqual([]);
    expect(mistakes(paths(...MESH))).toEqual([]);
  });
  it('are of one target: others may go another way', () => {
    const [a, b, c, d] = paths(...MESH) as [Session, Session, Session, Session];
    expect(mistakes([a, { ...b, target: 'u' }, { ...c, target: 'u' }, d], carrying(BUSY, BUSY, BUSY, BUSY))).toEqual([]);
  });
  it('say what to do, and what the doctor calls it', () => {
    const targets = [{ name: 't', iqn: 'iqn.2026-11.io.causeway:t' }] as Target[];
    const [found] = mistakes(paths(...MESH), carrying(BUSY, BUSY, BUSY, BUSY), targets);
    expect(found?.doctor).toBe('causeway doctor iscsi://10.0.0.101:3260,10.0.0.102:3260/iqn.2026-11.io.causeway:t/0');
    expect(found?.says).toContain('Paths of m to t cross: 10.0.0.1 → 10.0.0.101:3260, ');
    expect(found?.point).toContain('mesh');
  });
  it('are drawn so: the line, the port, the word', () => {
    const mesh = topology({ ...facts, sessions: paths(...MESH), moment: carrying(BUSY, BUSY, BUSY, BUSY) });
    const lines = mesh.edges.filter((edge) => edge.to.startsWith('portal:'));
    expect(lines.map((edge) => [edge.state, edge.wrong])).toEqual(MESH.map(() => ['bad', 'crosses']));
    expect(mesh.points.filter((one) => one.kind === 'port').map((one) => `${one.state}: ${one.word}`)).toEqual(['bad: paths cross', 'bad: paths cross']);
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
