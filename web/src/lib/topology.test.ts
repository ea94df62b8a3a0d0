import { describe, expect, it } from 'vitest';
import type { Disk, Grant, Host, Journal, Lun, NodeEvent, NodeNic, Pool, Session, SessionNic, Status, Target } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { place } from './layout.ts';
import { matrix } from './matrix.ts';
import { mistakes } from './mistakes.ts';
import { address } from './nics.ts';
import { DRAWN, pointOf, topology, type Facts } from './topology.ts';
import { csv } from './columns.ts';
import { lostPaths } from './lost_paths.ts';
import { LINES, PARTS, rowsOf } from './topology_rows.ts';
import { whatIf } from './whatif.ts';
import { fromText, next, partOf, previous, rangeOf, textOf } from './windows.ts';

/** What hosts may use, and reach over each of their sessions. */
const REACHED: Record<string, string[]> = { a: ['vm1'], b: ['vm1', 'vm2'], c: ['vm2'] };
const reached = (host: string) => (REACHED[host] ?? []).map((lun, i) => ({ lun, lun_id: i, read_only: false }));
const session = (id: number, host: string, from: string, portal: string) =>
  ({ id, host, initiator: `iqn.${host}`, from, portal, target: 't', since: '', luns: reached(host) }) as Session;
const status = {
  node: 'san', health: 'ok', problems: [], generation: 1, pools: [],
  counts: { luns: 2, hosts: 3 },
  portals: [{ group: 'a', tag: 1, address: '10.0.0.1:3260' }, { group: 'a', tag: 1, address: '10.0.1.1:3260' }],
} as unknown as Status;
/** As the daemon counts its paths. */
const counted = (name: string, least: number) =>
  ({ name, iqn: [], sessions: least, redundancy: { connected: least > 0, least_paths: least, targets: least ? [{ target: 't', least_paths: least }] : [] } }) as Host;
const facts: Facts = {
  status,
  hosts: [counted('b', 2), counted('a', 1), counted('c', 0)],
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
  it('draws a LUN as damaged or as not answering where that is known', () => {
    const [first, second] = facts.luns as [Lun, Lun];
    const luns = [{ ...first, findings: ['its scrub found damage: the map'] }, { ...second, stalled: { seconds: 9, operations: 1 } }];
    const drawn = topology({ ...facts, luns }).points.filter((one) => one.kind === 'lun').map((one) => [one.name, one.state, one.word, one.detail]);
    expect(drawn).toEqual([['vm1', 'bad', 'does not answer', 'its storage has not answered for 9 s'], ['vm2', 'bad', 'damaged', 'its scrub found damage: the map']]);
  });
  it('shows two sessions on one route as the mistake that they are', () => {
    const doubled = { ...facts, sessions: [...facts.sessions, session(4, 'a', '10.0.0.7:60', '10.0.0.1:3260')] };
    const edge = topology(doubled).edges.find((one) => one.id.startsWith('port:a') && one.to === 'portal:10.0.0.1:3260');
    expect(edge?.state).toBe('warn');
  });
  it('draws no more LUNs than can be seen, and finds the others', () => {
    const many = { ...facts, luns: Array.from({ length: 1000 }, (_, i) => ({ ...facts.luns[0], name: `lun${i}` }) as Lun) };
    expect(topology(many).windows).toEqual([{ kind: 'lun', from: 0, shown: DRAWN, total: 1000 }]);
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
  const carrying = (...bytes: number[]) => ({ sessions: new Map(bytes.map((bytesIn, i) => [i + 1, { bytesIn, bytesOut: 0, commands: 0 }])), luns: new Map() }) as unknown as Moment;
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
  it('are seen from the sessions alone, whether or not they carry load now', () => {
    for (const bytes of [[BUSY, 0, 0, BUSY], [BUSY * 100, BUSY, BUSY, BUSY * 100], [96, 96, 96, 96]]) expect(wrong(MESH, bytes)).toEqual([['would cross', 1, 2, 3, 4]]);
    const [idle] = mistakes(paths(...MESH));
    expect(idle).toMatchObject({ wrong: 'would cross', point: 'points 5 and 6, “mesh”' });
    expect(idle?.says).toContain('would cross under load');
  });
  it('are not: paths that stand by, of a host that plans its paths', () => {
    const planned = (on: boolean) => paths(...MESH).map((one) => ({ ...one, nic: { name: address(one.from), planned: on } }));
    expect(mistakes(planned(true), carrying(BUSY, 0, 0, BUSY))).toEqual([]);
    expect(mistakes(planned(true))).toEqual([]);
    expect(mistakes(planned(false)).map((one) => one.wrong)).toEqual(['would cross']);
    expect(mistakes(planned(true), carrying(BUSY, BUSY, BUSY, BUSY)).map((one) => one.wrong)).toEqual(['crosses']);
  });
  it('count NICs, not addresses, where these are known, at both ends', () => {
    const at = (id: number, from: string, portal: string, name: string) => ({ ...session(id, 'm', `10.0.0.${from}:50`, `10.0.0.10${portal}:3260`), nic: { name, planned: false } });
    expect(mistakes([at(1, '1', '1', 'eth0'), at(2, '2', '1', 'eth0')]).map((one) => one.wrong)).toEqual(['doubled']);
    const one: NodeNic = { name: 'p0', links: 1, mtu: 1500, carrier: true, addresses: ['1', '2'].map((n) => ({ address: `10.0.0.10${n}`, network: '10.0.0.0/24' })) };
    const both = mistakes(paths('1>1', '1>2'), undefined, [], { ...status, nics: [one] });
    expect(both.map((found) => found.wrong)).toEqual(['doubled']);
    expect(mistakes(paths('1>1', '1>2'), undefined, [], status)).toEqual([]);
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
      { name: 'a', host: 'a', luns: ['vm1'], pathsLeft: 0, pathsLost: 1 },
      { name: 'b', host: 'b', luns: [], pathsLeft: 1, pathsLost: 1 },
    ]);
    expect(loss.harmless).toBe(false);
    expect(loss.verdict).toBe('Without portal 10.0.0.1:3260, 1 host would lose 1 LUN.');
    expect(loss.lost.has('host:a')).toBe(true);
  });
  it('a port of a host with two is lost: nobody loses a LUN', () => {
    expect(whatIf(facts, point('port:b\n10.0.1.8\niqn.b'))).toMatchObject({ harmless: true });
  });
  it('a pool is lost: its LUNs, for all who have them, connected or not', () => {
    expect(whatIf(facts, point('pool:slow')).hosts.map((host) => [host.name, host.luns])).toEqual([['b', ['vm2']], ['c', ['vm2']]]);
  });
});

describe('a path that is lost', () => {
  const NOW = Date.parse('2026-11-27T15:50:00Z');
  const closed = ({ id, host, initiator, from, portal, target }: Session, reason?: string, time = '2026-11-27T15:43:10Z') =>
    ({ id: 100 + id, time, code: 'session_closed', severity: 'info', object: { kind: 'host', name: host }, message: '', fields: { session: id, initiator, from, portal, target, ...(reason && { reason }) } }) as NodeEvent;
  const [a, , cut] = facts.sessions as [Session, Session, Session];
  const left = facts.sessions.filter((one) => one !== cut);
  const after = (events: NodeEvent[], sessions = left, ended = new Map<number, Session>()) => topology({ ...facts, sessions, gone: lostPaths(events, sessions, ended, NOW) });
  const reset = 'the connection failed: reset';

  it('keeps its place, and nothing else moves', () => {
    const drawn = after([closed(cut, reset)]);
    const boxes = (of: typeof drawn) => [...place(of.points, 1200).at].sort(([x], [y]) => x.localeCompare(y));
    expect(boxes(drawn)).toEqual(boxes(topology(facts)));
    expect(drawn.edges.filter((edge) => edge.state === 'bad').map((edge) => edge.to)).toEqual(['port:b\n10.0.1.8\niqn.b', 'portal:10.0.1.1:3260']);
    expect(drawn.points.find((one) => one.id === 'port:b\n10.0.1.8\niqn.b')).toMatchObject({ state: 'bad', word: expect.stringMatching(/^lost since \d\d:43$/) as string });
  });
  it('is the NIC that it was, where that was seen or has another path', () => {
    const nic = { name: 'eth1', card: '0000:05:00', planned: true };
    const ports = (of: ReturnType<typeof after>) => of.points.filter((one) => one.kind === 'port' && one.id.includes('\nb') === false && one.id.startsWith('port:b')).map((one) => [one.name, one.word.slice(0, 4)]);
    expect(ports(after([closed(cut, reset)], left, new Map([[cut.id, { ...cut, nic }]])))).toEqual([['10.0.0.8', '1 se'], ['eth1', 'lost']]);
    const other = { ...cut, id: 9, portal: '10.0.0.1:3260', nic };
    const drawn = after([closed(cut, reset)], [...left, other]);
    expect(ports(drawn)).toEqual([['10.0.0.8', '1 se'], ['eth1', '1 se']]);
    expect(drawn.edges.filter((edge) => edge.state === 'bad').map((edge) => edge.to)).toEqual(['portal:10.0.1.1:3260']);
  });
  it('is none: that its host logged out of or has again, that an administrator ended, of more than an hour ago', () => {
    const bad = (...of: Parameters<typeof after>) => after(...of).edges.filter((edge) => edge.state === 'bad').length;
    for (const reason of ['logout', 'dropped by an administrator', 'the daemon stops']) expect(bad([closed(cut, reason)]), reason).toBe(0);
    expect(bad([closed(cut)]), 'nobody knows why').toBe(2);
    expect(bad([closed(cut, reset)], [...left, { ...cut, id: 7, from: '10.0.1.8:99' }])).toBe(0);
    expect(bad([closed(cut, reset, '2026-11-27T14:43:10Z')])).toBe(0);
    expect(bad([closed(cut, 'logout'), closed(cut, reset, '2026-11-27T15:40:00Z')]), 'it came back, and logged out').toBe(0);
    expect(bad([closed({ ...a, host: 'deleted' }, reset)])).toBe(0);
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

describe('members of pools', () => {
  const flowing = { luns: new Map([['vm2', { readBytes: 7, writeBytes: 3 }]]), sessions: new Map() } as unknown as Moment;
  const members = (...disks: (string | undefined)[]) => disks.map((id, member) => ({ member, path: `/m${member}`, last_event: 1, state: 'present', ...(id && { disks: [id] }) }));
  const disk = (id: string, ...used_by: string[]) => ({ id, names: [id], health: 'well', smart: 'read', facts: {}, used_by }) as Disk;
  const joined = (on: (string | undefined)[], more: Partial<Pool> = {}, disks: Disk[] = []): Facts => ({
    ...facts,
    pools: [{ name: 'fast', state: 'ok', layout: 'span', members: members(...on), ...more }, { name: 'slow', state: 'ok' }] as Pool[],
    luns: facts.luns.map((lun) => (lun.name === 'vm1' ? { ...lun, members: [1] } : { ...lun, pool: 'fast', members: [0, 1] })),
    disks,
  });
  const lost = (some: Facts, id: string) => whatIf(some, pointOf(some, id)!);
  const luns = (some: Facts, id: string) => lost(some, id).hosts.map((host) => [host.name, host.luns]);

  it('take with them the LUNs that have a part there, and no others', () => {
    const some = joined([undefined, undefined]);
    expect(luns(some, 'disk:fast 0')).toEqual([['b', ['vm2']], ['c', ['vm2']]]);
    expect(luns(some, 'disk:fast 1')).toEqual([['b', ['vm1', 'vm2']], ['a', ['vm1']], ['c', ['vm2']]]);
    expect(lost(some, 'disk:fast 0').lost).not.toContain('pool:fast');
    expect(lost(some, 'disk:fast 1').verdict).toBe('Without member 1 of pool fast, 3 hosts would lose 2 LUNs.');
  });
  it('are their disks, where these are known: one disk may have several', () => {
    const both = ['pool fast', 'member /m0 of pool fast', 'member /m1 of pool fast'];
    const one = joined(['sda', 'sda'], {}, [disk('sda', ...both)]);
    expect(topology(one).points.filter((point) => point.kind === 'disk').map((point) => point.id)).toEqual(['disk:sda']);
    expect(lost(one, 'disk:sda').lost).toContain('pool:fast');
    const two = joined(['sda', 'sdb'], {}, [disk('sda', 'pool fast'), disk('sdb', 'pool fast')]);
    expect(luns(two, 'disk:sda')).toEqual([['b', ['vm2']], ['c', ['vm2']]]);
    // Nobody counts what each of two members gets: that is drawn as not known, and not as nothing.
    const lines = (of: Facts) => topology({ ...of, moment: flowing }).edges.filter((edge) => edge.from === 'pool:fast').map((edge) => [edge.to, edge.bytes, edge.unknown]);
    expect(lines(joined(['sda', 'sdb']))).toEqual([['disk:fast 0', 0, true], ['disk:fast 1', 0, true]]);
    expect(lines(joined(['sda'], { members: [{ member: 0, path: '/m0', last_event: 1, state: 'present', taken_bytes: 0 }] }))).toEqual([['disk:fast 0', 10, undefined]]);
    // Whoever may not read the disks sees the members.
    expect(luns(joined(['sda', 'sdb']), 'disk:fast 0')).toEqual([['b', ['vm2']], ['c', ['vm2']]]);
  });
  it('are not the journal, without which no LUN of the pool is served, and of which the rest is said', () => {
    const some = joined(['sda', 'sdb'], { journal: { pending_bytes: 3 << 20 } as Journal }, [
      disk('sda', 'pool fast'), disk('sdb', 'pool fast'), disk('sdc', 'journal of pool fast'),
    ]);
    expect(lost(some, 'disk:sdc').verdict).toBe('Without disk sdc, 3 hosts would lose 2 LUNs. 3 MiB of acknowledged writes of pool fast are in its journal only, and would be lost.');
    expect(lost(some, 'disk:sdc').lost).not.toContain('pool:fast');
    expect(lost(some, 'disk:sda').verdict).not.toContain('journal');
  });
  it('that only LUNs have that nobody uses are no small loss', () => {
    const some = { ...joined([undefined, undefined]), grants: [], sessions: [] };
    expect(lost(some, 'disk:fast 0')).toMatchObject({ harmless: false, verdict: 'Without member 0 of pool fast, 1 LUN that nobody uses would be lost.' });
  });
});

describe('NICs, cards and networks', () => {
  const nic = (name: string, card?: string, fabric?: string): SessionNic => ({ name, ...(card && { card }), ...(fabric && { fabric }), bits_per_second: 1e10, planned: true });
  const node = (name: string, ip: string, network: string, card: string): NodeNic => ({ name, card, bits_per_second: 1e10, links: 1, mtu: 9000, carrier: name !== 'p1', addresses: [{ address: ip, network }] });
  /** Two networks; host b has a card with both of its NICs, host c one for each; host a tells nothing. */
  const wired: Facts = {
    ...facts,
    status: { ...status, nics: [node('p0', '10.0.0.1', '10.0.0.0/24', '0000:01:00'), node('p1', '10.0.1.1', '10.0.1.0/24', '0000:02:00')] },
    sessions: [
      session(1, 'a', '10.0.0.7:50', '10.0.0.1:3260'),
      { ...session(2, 'b', '10.0.0.8:50', '10.0.0.1:3260'), nic: nic('eth0', '0000:05:00', 'left') },
      { ...session(3, 'b', '10.0.1.8:51', '10.0.1.1:3260'), nic: nic('eth1', '0000:05:00') },
      { ...session(4, 'c', '10.0.0.9:50', '10.0.0.1:3260'), nic: nic('eth0', '0000:05:00') },
      { ...session(5, 'c', '10.0.1.9:51', '10.0.1.1:3260'), nic: nic('eth1', '0000:06:00') },
    ],
  };
  const at = (id: string) => topology(wired).points.find((one) => one.id === id) ?? expect.fail(`no ${id}`);
  const loses = (id: string) => whatIf(wired, at(id)).hosts.map((host) => `${host.name}: ${host.luns.join(' ')} (${host.pathsLeft} of ${host.pathsLeft + host.pathsLost})`);

  it('are named as the host told them; of a host that tells nothing that is said', () => {
    expect(at('port:b\neth0\niqn.b')).toMatchObject({ name: 'eth0', within: ['card:b\n0000:05:00\niqn.b'], detail: '10.0.0.8, card 0000:05:00, 10 Gb/s, fabric left' });
    expect(at('port:a\n10.0.0.7\niqn.a')).toMatchObject({ within: [], detail: '10.0.0.7: its NIC is not reported by this host' });
    expect(at('network:left')).toMatchObject({ word: 'fabric', detail: '10.0.0.0/24, named by its hosts' });
    expect(at('network:10.0.1.0/24')).toMatchObject({ word: 'subnet', detail: 'its switches are not known' });
    expect(at('portal:10.0.1.1:3260').within).toEqual(['node card:0000:02:00', 'node nic:p1']);
    expect(at('node nic:p1')).toMatchObject({ state: 'bad', word: '10 Gb/s, no carrier' });
  });
  it('take with them what goes through them, and nothing else', () => {
    expect(loses('card:b\n0000:05:00\niqn.b')).toEqual(['b: vm1 vm2 (0 of 2)']);
    expect(loses('card:c\n0000:05:00\niqn.c')).toEqual(['c:  (1 of 2)']);
    expect(loses('port:b\neth0\niqn.b')).toEqual(['b:  (1 of 2)']);
    expect(loses('network:left')).toEqual(['a: vm1 (0 of 1)', 'b:  (1 of 2)', 'c:  (1 of 2)']);
    expect(loses('node card:0000:02:00')).toEqual(['b:  (1 of 2)', 'c:  (1 of 2)']);
    expect(whatIf(wired, at('card:b\n0000:05:00\niqn.b')).verdict).toBe('Without card 0000:05:00 of b, 1 host would lose 2 LUNs.');
    const lost = whatIf(wired, at('node card:0000:02:00')).lost;
    expect(['node nic:p1', 'portal:10.0.1.1:3260', 'port:b\neth1\niqn.b', 'port:c\neth1\niqn.c'].filter((id) => !lost.has(id))).toEqual([]);
    expect(lost.has('portal:10.0.0.1:3260')).toBe(false);
  });
  it('are frames around what they carry, and a network is as tall as its portals', () => {
    const { points } = topology(wired);
    const { at: boxes, frames } = place(points, 1200);
    const inside = (id: string) => points.filter((one) => one.within?.includes(id)).every((one) => {
      const [box, around] = [boxes.get(one.id), frames.filter((frame) => frame.id === id)];
      return box && around.some((frame) => frame.y < box.y && frame.y + frame.height > box.y + box.height && frame.x < box.x && frame.x + frame.width > box.x + box.width);
    });
    expect(new Set(frames.map((frame) => frame.id)).size).toBe(frames.length);
    expect(frames.map((frame) => [frame.id, inside(frame.id)])).toEqual(frames.map((frame) => [frame.id, true]));
    const [left, right] = ['network:left', 'network:10.0.1.0/24'].map((id) => boxes.get(id));
    const [a, b] = [left, right].sort((x, y) => (x?.y ?? 0) - (y?.y ?? 0));
    expect((a?.y ?? 0) + (a?.height ?? 0)).toBeLessThan(b?.y ?? 0);
  });
  it('stand in the matrix', () => {
    const sessions = wired.sessions.map((one) => ({ ...one, luns: [{ lun: 'vm1', lun_id: 0, read_only: false }] }));
    const grants = facts.grants.map((grant) => ({ ...grant, target: 't' }));
    const table = matrix(grants, facts.hosts, sessions, '');
    expect(table.cell('b', 'vm1')).toMatchObject({ short: '2', nics: ['eth0', 'eth1'] });
    expect(table.cell('a', 'vm1').nics).toEqual([]);
  });
});

describe('more than can be seen', () => {
  const host = (i: number) => `host-${String(i).padStart(3, '0')}`;
  const many: Facts = {
    ...facts,
    hosts: Array.from({ length: 256 }, (_, i) => counted(host(i), 2)),
    sessions: Array.from({ length: 512 }, (_, i) => session(i + 1, host(i >> 1), `10.0.${i % 2}.${(i >> 1) % 250}:50`, `10.0.${i % 2}.1:3260`)),
    luns: Array.from({ length: 10_000 }, (_, i) => ({ ...facts.luns[0], name: `lun${i}`, state: i === 9_999 ? 'offline' : 'online' }) as Lun),
    grants: Array.from({ length: 10_000 }, (_, i) => ({ host: host(i % 256), lun: `lun${i}` }) as Grant),
    moment: { sessions: new Map(Array.from({ length: 512 }, (_, i) => [i + 1, { bytesIn: 1, bytesOut: 0 }])), luns: new Map(Array.from({ length: 10_000 }, (_, i) => [`lun${i}`, { readBytes: 1, writeBytes: 0 }])) } as unknown as Moment,
  };
  const rest = (kind: string, of = topology(many)) => of.points.find((one) => one.id === `more:${kind}`);

  it('is said, with the worst of it and what it moves', () => {
    const drawn = topology(many);
    expect(rest('lun', drawn)).toMatchObject({ name: '9,960 more', state: 'bad', word: '1 offline', opens: DRAWN });
    expect(rest('host', drawn)).toMatchObject({ name: '216 more', state: 'good', opens: DRAWN });
    const into = (id: string) => drawn.edges.filter((edge) => edge.to === id).reduce((sum, edge) => sum + edge.bytes, 0);
    expect(into('node:san')).toBe(512);
    expect(drawn.edges.filter((edge) => edge.from === 'node:san').reduce((sum, edge) => sum + edge.bytes, 0)).toBe(10_000);
    expect(into('pool:slow')).toBe(10_000);
  });
  it('can be gone through from the first to the last, and each is drawn once', () => {
    const seen = new Set<string>();
    let at = 0;
    do {
      const drawn = topology(many, '', { host: at });
      for (const one of drawn.points) if (one.kind === 'host' && one.opens === undefined) seen.add(one.name);
      at = rest('host', drawn)?.opens ?? 0;
    } while (at);
    expect(seen.size).toBe(256);
    expect(topology(many, '', { lun: 99_999 }).windows[1]?.from).toBe(0);
  });
  it('is asked of all of it what would be lost', () => {
    const loss = whatIf(many, point('portal:10.0.0.1:3260'));
    expect(loss.hosts).toHaveLength(256);
    expect(loss.harmless).toBe(true);
    const away = pointOf(many, 'host:host-255');
    expect(away && whatIf(many, away).hosts.map((one) => one.name)).toEqual(['host-255']);
    expect(pointOf(many, 'lun:lun9999')).toMatchObject({ word: 'offline' });
  });
  it('is all of it in a file', () => {
    const luns = Array.from({ length: 3 * DRAWN }, (_, i) => ({ name: `l${i}`, state: 'online', pool: 'fast', grants: ['a'], backing: 'pool fast' })) as Lun[];
    const { parts, lines } = rowsOf({ ...facts, luns }, '');
    expect(parts.filter((part) => part.kind === 'lun').length).toBe(3 * DRAWN);
    const rows = csv(lines, LINES).split('\r\n');
    expect(rows[0]).toBe('From,Name,To,Name,State,Bytes a second,"p99, µs",What it is');
    expect(rows.filter((row) => row.startsWith('LUN,')).length).toBe(3 * DRAWN);
    expect(csv(parts, PARTS)).toContain('host,a,warn,single path,');
  });
  it('has its place in the address', () => {
    expect(fromText('lun:40,host:80,x:1,pool:-2,disk:1e99')).toEqual({ lun: 40, host: 80 });
    expect(textOf({ lun: 40, host: 0 })).toBe('lun:40');
    expect(rangeOf({ from: 40, shown: 40, total: 10_000 })).toBe('41–80 of 10,000');
    expect(previous({ from: 0, shown: 40, total: 256 })).toBe(240);
    expect([previous({ from: 0, shown: 100, total: 256 }, 100), previous({ from: 30, shown: 30, total: 90 }, 30)]).toEqual([200, 0]);
    expect(['', '100', '300', 'x'].map((at) => partOf(256, at, 100).from)).toEqual([0, 100, 0, 0]);
    expect([next(partOf(256, '100', 100)), next(partOf(256, '200', 100)), partOf(256, '200', 100).shown]).toEqual([200, 0, 56]);
  });
});
