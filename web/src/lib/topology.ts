// What hangs together: hosts, their ports, portals, the node, LUNs, pools and disks, in columns that keep their order. Pure.

import type { Disk, Grant, Host, Lun, Pool, Session, Status, Target } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { grouped } from './grouped.ts';
import { compare, plural, whole } from './format.ts';
import type { LostPath } from './lost_paths.ts';
import { lunTrouble, troubleWord } from './luns.ts';
import { below } from './lying.ts';
import { mistakes, standingBy, wrongOf, type Mistake, type Wrong } from './mistakes.ts';
import { allPortals, hostCardKey, machineNames, networks, nicKey, nicSays, nicWord, nodeNic } from './nics.ts';
import { busyByPool, moved as movedBy, poolFlows } from './pool_flows.ts';
import { poolState, poolWord } from './pools.ts';
import { pathsShown } from './paths.ts';
import type { State } from './verdict.ts';

export type Kind = 'host' | 'card' | 'port' | 'network' | 'portal' | 'node nic' | 'node card' | 'node' | 'lun' | 'pool' | 'disk';
/** Cards and the node's NICs are frames around what they carry. */
export const COLUMNS: Kind[] = ['host', 'port', 'network', 'portal', 'node', 'lun', 'pool', 'disk'];
export const TITLES: Partial<Record<Kind, string>> = {
  host: 'Hosts', port: 'Their NICs', network: 'Networks', portal: 'Portals', node: 'Node', lun: 'LUNs', pool: 'Pools', disk: 'Disks',
};
/** As it is said of one. */
export const WORDS: Record<Kind, string> = {
  host: 'host', card: 'card', port: 'NIC', network: 'network', portal: 'portal', 'node nic': 'NIC', 'node card': 'card', node: 'node', lun: 'LUN', pool: 'pool', disk: 'disk',
};

export interface Point {
  id: string;
  kind: Kind;
  name: string;
  state: State;
  word: string;
  /** As a sentence calls it. */
  called: string;
  /** What else is known of it. */
  detail?: string | undefined;
  /** The frames around it, the outermost first. */
  within?: string[];
  /** Of a portal. */
  network?: string | undefined;
  /** It stands for those that are not drawn, and opens the next of them. */
  opens?: number;
}

export interface Edge {
  id: string;
  from: string;
  to: string;
  state: State;
  /** Bytes a second. */
  bytes: number;
  /** Something flows, and how much of it goes here is counted nowhere: `bytes` is what is known of it. */
  unknown?: boolean;
  /** What it is, for people. */
  says: string;
  wrong?: Wrong | undefined;
  /** Of paths: the sessions that go over it. */
  sessions?: number[];
  /** The longest p99 of these, in microseconds. */
  p99?: number | undefined;
  /** All of them stand by. */
  standby?: boolean;
}

export interface Topology {
  points: Point[];
  edges: Edge[];
  /** What is wrong with the paths that are drawn. */
  mistakes: Mistake[];
  /** What is drawn of the columns that have more. */
  windows: Window[];
}

/** A part of a column. */
export interface Window {
  kind: Paged;
  from: number;
  shown: number;
  total: number;
}

export interface Facts {
  status: Status;
  hosts: Host[];
  sessions: Session[];
  luns: Lun[];
  pools: Pool[];
  grants: Grant[];
  disks?: Disk[] | undefined;
  targets?: Target[] | undefined;
  moment?: Moment | undefined;
  /** Of sessions, in microseconds. */
  p99?: Map<number, number> | undefined;
  /** Paths that are no more, and keep their place. */
  gone?: LostPath[] | undefined;
}

/** So many of a column are drawn at once. */
export const DRAWN = 40;
/** Columns that may have more. */
export const PAGED = ['host', 'lun', 'pool', 'disk'] as const;
export type Paged = (typeof PAGED)[number];
/** Where each of them begins. */
export type From = Partial<Record<Paged, number>>;

export const idOf = (kind: Kind, name: string) => `${kind}:${name}`;

const byName = (a: { name: string }, b: { name: string }) => compare(a.name, b.name);

/** LUNs that are served, by name. The figures are new each second, and a list of 10,000 is not. */
const inOrder = new WeakMap<Lun[], Lun[]>();

function serving(luns: Lun[]): Lun[] {
  let known = inOrder.get(luns);
  if (!known) inOrder.set(luns, (known = luns.filter((lun) => lun.state !== 'removed').sort(byName)));
  return known;
}

/** A part of what there is, and what is known of the rest. */
interface Cut<Row> {
  drawn: Row[];
  rest: Row[];
  window: Window;
}

function cut<Row>(kind: Paged, all: Row[], from: From, most: number): Cut<Row> {
  const wanted = from[kind] ?? 0;
  const start = wanted < all.length ? Math.max(0, wanted) : 0;
  const end = start + most;
  return { drawn: all.slice(start, end), rest: [...all.slice(0, start), ...all.slice(end)], window: { kind, from: start, shown: Math.min(most, all.length - start), total: all.length } };
}

const restId = (kind: Paged) => `more:${kind}`;

/** One point for all of a column that are not drawn: it says the worst of them. */
function restPoint(window: Window, rest: { state: State; word: string }[]): Point[] {
  if (!rest.length) return [];
  const order: State[] = ['bad', 'warn'];
  const wrong = [...grouped(rest.filter((one) => order.includes(one.state)), (one) => `${order.indexOf(one.state)}${one.word}`)].sort(([a], [b]) => a.localeCompare(b));
  const next = window.from + window.shown;
  return [{
    id: restId(window.kind), kind: window.kind, name: `${whole(rest.length)} more`, called: 'the rest', state: wrong[0]?.[1][0]?.state ?? 'good',
    word: wrong.map(([, same]) => `${same.length} ${same[0]?.word}`).join(', ') || 'nothing wrong', opens: next < window.total ? next : 0,
  }];
}

/** `most`: of each column; a file has all of them. */
export function topology(facts: Facts, filter = '', from: From = {}, most = DRAWN): Topology {
  const wanted = filter.trim().toLowerCase();
  const has = (name: string) => !wanted || name.toLowerCase().includes(wanted);
  const sessions = facts.sessions.filter((session) => session.target !== undefined);
  const ofHost = wanted ? new Set(facts.grants.filter((grant) => has(grant.host)).map((grant) => grant.lun)) : undefined;
  const luns = cut('lun', wanted ? serving(facts.luns).filter((lun) => has(lun.name) || ofHost?.has(lun.name)) : serving(facts.luns), from, most);
  const found = new Set(wanted ? [...luns.drawn, ...luns.rest].map((lun) => lun.name) : []);
  const granted = new Set(facts.grants.filter((grant) => found.has(grant.lun)).map((grant) => grant.host));
  const hosts = cut('host', hostsOf(facts, sessions).filter((host) => has(host.name) || granted.has(host.name)), from, most);
  const pools = cut('pool', poolPoints(facts, luns.drawn), from, most);
  const disks = cut('disk', diskPoints(facts), from, most);
  const shown = new Set(hosts.drawn.map((host) => host.name));
  const hidden = new Set(hosts.rest.map((host) => host.name));
  const paths = sessions.filter((session) => shown.has(session.host));
  const gone = (facts.gone ?? []).filter((path) => shown.has(path.host));
  const wrongs = mistakes(sessions.filter((session) => shown.has(session.host) || hidden.has(session.host)), facts.moment, facts.targets, facts.status);
  const wrong = wrongOf(wrongs);
  const points = [
    ...hosts.drawn, ...restPoint(hosts.window, hosts.rest),
    ...ports(paths, wrong, gone),
    ...listening(facts, [...sessions, ...gone]),
    node(facts.status),
    ...luns.drawn.map(lunPoint), ...restPoint(luns.window, luns.rest.map(lunState)),
    ...pools.drawn, ...restPoint(pools.window, pools.rest),
    ...disks.drawn, ...restPoint(disks.window, disks.rest),
  ];
  const at = new Set(points.map((point) => point.id));
  const lines = edges(facts, paths, gone, sessions.filter((session) => hidden.has(session.host)), luns, wrong, (id, kind) => (at.has(id) ? id : restId(kind)));
  return { points, edges: lines.filter((edge) => at.has(edge.from) && at.has(edge.to)), mistakes: wrongs, windows: [hosts, luns, pools, disks].map((one) => one.window).filter((window) => window.total > window.shown) };
}

/** A part, drawn or not. */
export function pointOf(facts: Facts, id: string): Point | undefined {
  const sessions = facts.sessions.filter((session) => session.target !== undefined);
  const [kind = ''] = id.split(':', 1);
  const name = id.slice(kind.length + 1);
  switch (kind) {
    case 'lun': return facts.luns.filter((lun) => lun.state !== 'removed' && lun.name === name).map(lunPoint)[0];
    case 'host': return hostsOf(facts, sessions.filter((session) => session.host === name)).find((point) => point.id === id);
    case 'card':
    case 'port': return ports(sessions.filter((session) => session.host === name.split('\n', 1)[0]), new Map(), facts.gone).find((point) => point.id === id);
    case 'pool': return poolPoints(facts, facts.luns).find((point) => point.id === id);
    case 'disk': return diskPoints(facts).find((point) => point.id === id);
    default: return [...listening(facts, sessions), node(facts.status)].find((point) => point.id === id);
  }
}

const UNKNOWN = { connected: false, least_paths: 0 };

function hostsOf(facts: Facts, sessions: Session[]): Point[] {
  const known = new Map(facts.hosts.map((host) => [host.name, host.redundancy]));
  // The list of hosts comes after the session of a new one.
  const names = new Set([...known.keys(), ...sessions.map((session) => session.host)]);
  return [...names].map((name): Point => {
    return { id: idOf('host', name), kind: 'host', name, called: `host ${name}`, ...pathsShown(known.get(name) ?? UNKNOWN) };
  }).sort(byName);
}

/** How a path stands, and what is said of it. */
const WRONG: Record<Wrong, { state: State; word: string; says: string }> = {
  crosses: { state: 'bad', word: 'paths cross', says: 'crosses other paths: they hold each other up' },
  'would cross': { state: 'warn', word: 'paths would cross', says: 'would cross other paths under load' },
  doubled: { state: 'warn', word: 'path doubled', says: 'two sessions on the same route: they fail together' },
};

export const wordOf = (wrong: Wrong) => WRONG[wrong].word;
export const stateOf = (wrong: Wrong) => WRONG[wrong].state;

function ports(live: Session[], wrong: Map<number, Wrong>, gone: LostPath[] = []): Point[] {
  const sessions: (Session | LostPath)[] = [...live, ...gone];
  const nameOf = machineNames(sessions);
  const points = [...grouped(sessions, nicKey)].flatMap(([key, own]): Point[] => {
    const [, name = ''] = key.split('\n');
    const [first] = own;
    if (!first) return [];
    const worst = (['crosses', 'doubled', 'would cross'] as const).find((one) => own.some((session) => wrong.get(session.id) === one));
    const count = own.filter((session) => !('lost' in session)).length;
    // Of a NIC that has others, the line alone is lost.
    const lost = count ? undefined : (first as LostPath).lost;
    const word = lost ?? (worst ? WRONG[worst].word : plural(count, 'session'));
    const card = hostCardKey(first);
    const machine = nameOf(first);
    return [{
      id: idOf('port', key), kind: 'port', name, called: first.nic ? `NIC ${name} of ${machine}` : `the NIC of ${machine} at ${name}`, state: lost ? 'bad' : worst ? WRONG[worst].state : 'good', word,
      detail: machine === first.host ? nicSays(first) : `${nicSays(first)}, ${machine}`, within: card === undefined ? [] : [idOf('card', card)],
    }];
  });
  const cards = [...new Set(points.flatMap((point) => point.within ?? []))].map((id): Point => {
    const [, name = ''] = id.slice('card:'.length).split('\n');
    const own = points.filter((point) => point.within?.includes(id));
    const of = sessions.find((session) => hostCardKey(session) === id.slice('card:'.length));
    return { id, kind: 'card', name, called: `card ${name} of ${of && nameOf(of)}`, state: 'good', word: plural(own.length, 'NIC') };
  });
  // In the order of their hosts, machines and cards, so that lines cross as little as they can.
  const order = (point: Point) => {
    const [host, , initiator] = point.id.slice('port:'.length).split('\n');
    return [host, initiator, ...(point.within ?? ['card:~']), point.name].join('\n');
  };
  return [...points.sort((a, b) => compare(order(a), order(b))), ...cards];
}

export function portId(session: Session): string {
  return idOf('port', nicKey(session));
}

/** Portals with the networks that they are in, and the NICs and cards of the node below them. */
function listening(facts: Facts, sessions: Session[]): Point[] {
  const { status } = facts;
  const within = networks(status, sessions);
  const nics = new Map((status.nics ?? []).map((nic) => [nic.name, nic]));
  const points = allPortals(status, sessions).map((portal): Point => {
    const nic = nodeNic(status, portal.address);
    const network = within.get(portal.address);
    return {
      id: idOf('portal', portal.address), kind: 'portal', name: portal.address, called: `portal ${portal.address}`,
      state: portal.problem ? 'bad' : 'good', word: portal.problem ? 'does not listen' : (portal.interface ?? portal.group), detail: portal.group && `portal group ${portal.group}`,
      within: nic ? [...(nic.card ? [idOf('node card', nic.card)] : []), idOf('node nic', nic.name)] : [],
      network: network && idOf('network', network.name),
    };
  });
  const order = (point: Point) => [point.network ?? '~', ...(point.within?.length ? point.within : ['~']), point.name].join('\n');
  points.sort((a, b) => compare(order(a), order(b)));
  const named = new Map([...within.values()].map((network) => [network.name, network]));
  const segments = [...named.values()].map((network): Point => ({
    id: idOf('network', network.name), kind: 'network', name: network.name, called: network.called, state: 'good', word: network.word, detail: network.says,
  }));
  const frames = [...new Set(points.flatMap((point) => point.within ?? []))].map((id): Point => {
    if (id.startsWith('node card:')) {
      const name = id.slice('node card:'.length);
      return { id, kind: 'node card', name, called: `card ${name} of the node`, state: 'good', word: plural([...nics.values()].filter((nic) => nic.card === name).length, 'NIC') };
    }
    const name = id.slice('node nic:'.length);
    const nic = nics.get(name);
    return { id, kind: 'node nic', name, called: `NIC ${name} of the node`, state: nic?.carrier === false ? 'bad' : 'good', word: nic ? nicWord(nic) : '' };
  });
  return [...points, ...segments.sort(byName), ...frames];
}

/** All that a session goes through. */
export function partsOf(facts: Facts): (session: Session) => Set<string> {
  const portals = new Map(listening(facts, facts.sessions).map((point) => [point.id, point]));
  return (session) => {
    const card = hostCardKey(session);
    const portal = portals.get(idOf('portal', session.portal));
    return new Set([
      idOf('host', session.host), portId(session), ...(card === undefined ? [] : [idOf('card', card)]),
      idOf('portal', session.portal), ...(portal?.within ?? []), ...(portal?.network ? [portal.network] : []), idOf('node', facts.status.node),
    ]);
  };
}

/** What a network or a frame has in it. */
export function heldBy(facts: Facts, id: string): string[] {
  const points = listening(facts, facts.sessions);
  return points.filter((point) => point.network === id || point.within?.includes(id)).flatMap((point) => [point.id, ...(id.startsWith('node card:') ? (point.within ?? []) : [])]);
}

function node(status: Status): Point {
  const state: State = status.health === 'ok' ? 'good' : status.health === 'degraded' ? 'warn' : 'bad';
  return { id: idOf('node', status.node), kind: 'node', name: status.node, called: `node ${status.node}`, state, word: status.health };
}

function lunState(lun: Lun): { state: State; word: string } {
  const trouble = troubleWord(lun);
  if (trouble) return { state: 'bad', word: trouble };
  return lun.grants.length ? { state: 'good', word: 'online' } : { state: 'off', word: 'granted to nobody' };
}

export function lunPoint(lun: Lun): Point {
  return { id: idOf('lun', lun.name), kind: 'lun', name: lun.name, called: `LUN ${lun.name}`, ...lunState(lun), detail: lunTrouble(lun) };
}

function poolPoints(facts: Facts, luns: Lun[]): Point[] {
  const points = facts.pools.map((pool): Point => ({
    id: idOf('pool', pool.name), kind: 'pool', name: pool.name, called: `pool ${pool.name}`, state: poolState(pool), word: poolWord(pool),
  }));
  for (const name of new Set(luns.filter((lun) => !lun.pool).map((lun) => lun.backing))) {
    points.push({ id: idOf('pool', name), kind: 'pool', name, called: name, state: 'good', word: 'no pool' });
  }
  return points.sort(byName);
}

/** Disks on which a pool or its journal lies, and members whose disks are not known. */
function diskPoints(facts: Facts): Point[] {
  const all = new Map(facts.pools.flatMap((pool) => below(pool, facts.disks ?? [])).map((one) => [one.id, one]));
  return [...all.values()].map(({ id, name, called, state, word }): Point => ({ id, kind: 'disk', name, called, state, word: word.replace(/^unknown: /, '') })).sort(byName);
}

export function backingId(lun: Lun): string {
  return idOf('pool', lun.pool ?? lun.backing);
}

function edges(facts: Facts, sessions: Session[], gone: LostPath[], hidden: Session[], luns: Cut<Lun>, wrong: Map<number, Wrong>, drawn: (id: string, kind: Paged) => string): Edge[] {
  const all = new Map<string, Edge>();
  const stands = standingBy([...sessions, ...hidden], facts.moment);
  const over = (from: string, to: string, session: Session) => {
    const edge = all.get(`${from}>${to}`);
    if (!edge) return;
    const p99 = facts.p99?.get(session.id);
    edge.p99 = Math.max(edge.p99 ?? 0, p99 ?? 0) || undefined;
    edge.standby = (edge.standby ?? true) && stands.has(session.id);
    (edge.sessions ??= []).push(session.id);
  };
  const add = (from: string, to: string, bytes: number, state: State, says: string, mistake?: Wrong) => {
    const id = `${from}>${to}`;
    const known = all.get(id);
    if (!known) all.set(id, { id, from, to, bytes, state, says, wrong: mistake });
    else {
      known.bytes += bytes;
      if (mistake && known.wrong !== 'crosses' && !(mistake === 'would cross' && known.wrong)) Object.assign(known, { state, says, wrong: mistake });
    }
  };
  const center = idOf('node', facts.status.node);
  const moved = (session: Session) => {
    const rates = facts.moment?.sessions.get(session.id);
    return rates ? rates.bytesIn + rates.bytesOut : 0;
  };
  const words = plural(hidden.length, 'session');
  for (const session of hidden) {
    const portal = idOf('portal', session.portal);
    add(restId('host'), portal, moved(session), 'good', `of ${words} of hosts that are not drawn`);
    add(portal, center, moved(session), 'good', 'all sessions of this portal');
    over(restId('host'), portal, session);
    over(portal, center, session);
  }
  for (const session of sessions) {
    const bytes = moved(session);
    const portal = idOf('portal', session.portal);
    const mistake = wrong.get(session.id);
    const { state, says } = mistake ? WRONG[mistake] : { state: 'good' as State, says: `session ${session.id}${stands.has(session.id) ? ' stands by' : ''}` };
    add(idOf('host', session.host), portId(session), bytes, 'good', `NIC of ${session.host}`);
    add(portId(session), portal, bytes, state, says, mistake);
    add(portal, center, bytes, 'good', 'all sessions of this portal');
    for (const [from, to] of [[idOf('host', session.host), portId(session)], [portId(session), portal], [portal, center]] as const) over(from, to, session);
  }
  for (const path of gone) {
    const [nic, portal] = [portId(path), idOf('portal', path.portal)];
    add(idOf('host', path.host), nic, 0, 'bad', path.lost);
    add(nic, portal, 0, 'bad', path.lost);
    add(portal, center, 0, 'good', 'all sessions of this portal');
  }
  for (const lun of luns.rest) {
    const bytes = movedBy(lun.name, facts.moment);
    add(center, restId('lun'), bytes, 'good', 'LUNs that are not drawn');
    add(restId('lun'), drawn(backingId(lun), 'pool'), bytes, 'good', 'LUNs that are not drawn');
  }
  for (const lun of luns.drawn) {
    const bytes = movedBy(lun.name, facts.moment);
    const state: State = lun.state === 'online' ? 'good' : 'bad';
    add(center, idOf('lun', lun.name), bytes, state, lun.reason ?? lun.state);
    add(idOf('lun', lun.name), drawn(backingId(lun), 'pool'), bytes, state, lun.backing);
  }
  const busy = busyByPool(serving(facts.luns), facts.moment);
  for (const pool of facts.pools) {
    const parts = below(pool, facts.disks ?? []);
    const flows = poolFlows(pool, parts, busy.get(pool.name) ?? [], facts.moment);
    for (const part of parts) {
      const [from, to, bytes] = [drawn(idOf('pool', pool.name), 'pool'), drawn(part.id, 'disk'), flows.get(part.id)];
      add(from, to, bytes ?? 0, part.state === 'bad' ? 'bad' : 'good', part.says);
      const edge = all.get(`${from}>${to}`);
      if (edge && bytes === undefined) edge.unknown = true;
    }
  }
  return [...all.values()];
}
