// What hangs together: hosts, their ports, portals, the node, LUNs, pools and disks, in columns that keep their order. Pure.

import type { Disk, Grant, Host, Lun, Pool, Session, Status, Target } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { diskName, diskState } from './disks.ts';
import { grouped } from './grouped.ts';
import { address, mistakes, wrongOf, type Mistake, type Wrong } from './mistakes.ts';
import { poolState, poolWord } from './pools.ts';
import { hasSeveralPortals, pathsByHost, pathsOf, pathsShown, type State } from './verdict.ts';

export type Kind = 'host' | 'port' | 'portal' | 'node' | 'lun' | 'pool' | 'disk';
export const COLUMNS: Kind[] = ['host', 'port', 'portal', 'node', 'lun', 'pool', 'disk'];
export const TITLES: Record<Kind, string> = {
  host: 'Hosts', port: 'Their ports', portal: 'Portals', node: 'Node', lun: 'LUNs', pool: 'Pools', disk: 'Disks',
};

export interface Point {
  id: string;
  kind: Kind;
  name: string;
  state: State;
  word: string;
}

export interface Edge {
  id: string;
  from: string;
  to: string;
  state: State;
  /** Bytes a second. */
  bytes: number;
  /** What it is, for people. */
  says: string;
  wrong?: Wrong | undefined;
}

export interface Topology {
  points: Point[];
  edges: Edge[];
  /** What is wrong with the paths that are drawn. */
  mistakes: Mistake[];
  /** LUNs that are not drawn, because there are too many. */
  hidden: number;
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
}

/** So many of a column are drawn; a name to look for chooses among more. */
export const DRAWN = 40;

export const idOf = (kind: Kind, name: string) => `${kind}:${name}`;

const words = new Intl.Collator('en', { numeric: true });
const byName = (a: { name: string }, b: { name: string }) => words.compare(a.name, b.name);

/** LUNs that are served, by name. The figures are new each second, and a list of 10,000 is not. */
const inOrder = new WeakMap<Lun[], Lun[]>();

function serving(luns: Lun[]): Lun[] {
  let known = inOrder.get(luns);
  if (!known) inOrder.set(luns, (known = luns.filter((lun) => lun.state !== 'removed').sort(byName)));
  return known;
}

export function topology(facts: Facts, filter = ''): Topology {
  const wanted = filter.trim().toLowerCase();
  const has = (name: string) => !wanted || name.toLowerCase().includes(wanted);
  const sessions = facts.sessions.filter((session) => session.target !== undefined);
  const ofHost = wanted ? new Set(facts.grants.filter((grant) => has(grant.host)).map((grant) => grant.lun)) : undefined;
  const some = serving(facts.luns).filter((lun) => has(lun.name) || ofHost?.has(lun.name));
  const luns = some.slice(0, DRAWN);
  const drawn = new Set(luns.map((lun) => lun.name));
  const granted = new Set(facts.grants.filter((grant) => drawn.has(grant.lun)).map((grant) => grant.host));
  const hosts = hostsOf(facts, sessions).filter((host) => has(host.name) || (wanted && granted.has(host.name))).slice(0, DRAWN);
  const shown = new Set(hosts.map((host) => host.name));
  const paths = sessions.filter((session) => shown.has(session.host));
  const found = mistakes(paths, facts.moment, facts.targets);
  const wrong = wrongOf(found);
  const points = [
    ...hosts,
    ...ports(paths, wrong),
    ...portals(facts.status),
    node(facts.status),
    ...luns.map(lunPoint),
    ...poolPoints(facts, luns),
    ...diskPoints(facts),
  ];
  return { points, edges: edges(facts, paths, luns, wrong), mistakes: found, hidden: some.length - luns.length };
}

function hostsOf(facts: Facts, sessions: Session[]): Point[] {
  const paths = pathsByHost(sessions);
  const names = new Set([...facts.hosts.map((host) => host.name), ...paths.keys()]);
  const several = hasSeveralPortals(facts.status);
  return [...names].map((name): Point => {
    return { id: idOf('host', name), kind: 'host', name, ...pathsShown(pathsOf(paths.get(name) ?? []), several) };
  }).sort(byName);
}

/** How a path stands, and what is said of it. */
const WRONG: Record<Wrong, { state: State; word: string; says: string }> = {
  crosses: { state: 'bad', word: 'paths cross', says: 'crosses other paths: they hold each other up' },
  doubled: { state: 'warn', word: 'path doubled', says: 'two sessions on the same route: they fail together' },
};

export const wordOf = (wrong: Wrong) => WRONG[wrong].word;

function ports(sessions: Session[], wrong: Map<number, Wrong>): Point[] {
  const points = [...grouped(sessions, portName)].map(([key, own]): Point => {
    const [, name = ''] = key.split('\n');
    const worst = own.map((session) => wrong.get(session.id)).sort().find((one) => one !== undefined);
    const word = worst ? WRONG[worst].word : own.length === 1 ? '1 session' : `${own.length} sessions`;
    return { id: idOf('port', key), kind: 'port', name, state: worst ? WRONG[worst].state : 'good', word };
  });
  // In the order of their hosts, so that lines cross as little as they can.
  return points.sort((a, b) => words.compare(a.id, b.id));
}

function portName(session: Session): string {
  return `${session.host}\n${address(session.from)}`;
}

export function portId(session: Session): string {
  return idOf('port', portName(session));
}

function portals(status: Status): Point[] {
  return status.portals.map((portal): Point => ({
    id: idOf('portal', portal.address),
    kind: 'portal',
    name: portal.address,
    state: portal.problem ? 'bad' : 'good',
    word: portal.problem ? 'does not listen' : (portal.interface ?? portal.group),
  })).sort(byName);
}

function node(status: Status): Point {
  const state: State = status.health === 'ok' ? 'good' : status.health === 'degraded' ? 'warn' : 'bad';
  return { id: idOf('node', status.node), kind: 'node', name: status.node, state, word: status.health };
}

function lunPoint(lun: Lun): Point {
  const state: State = lun.state === 'online' ? (lun.grants.length ? 'good' : 'off') : 'bad';
  const word = lun.state === 'online' ? (lun.grants.length ? 'online' : 'granted to nobody') : 'offline';
  return { id: idOf('lun', lun.name), kind: 'lun', name: lun.name, state, word };
}

function poolPoints(facts: Facts, luns: Lun[]): Point[] {
  const points = facts.pools.map((pool): Point => ({
    id: idOf('pool', pool.name), kind: 'pool', name: pool.name, state: poolState(pool), word: poolWord(pool),
  }));
  for (const name of new Set(luns.filter((lun) => !lun.pool).map((lun) => lun.backing))) {
    points.push({ id: idOf('pool', name), kind: 'pool', name, state: 'good', word: 'no pool' });
  }
  return points.sort(byName);
}

/** Disks on which a pool or its journal lies. */
function diskPoints(facts: Facts): Point[] {
  const used = (facts.disks ?? []).filter((disk) => facts.pools.some((pool) => liesOn(pool.name, disk)));
  return used.map((disk): Point => ({ id: diskId(disk), kind: 'disk', name: diskName(disk), ...diskState(disk) })).sort(byName);
}

export const diskId = (disk: Disk) => idOf('disk', disk.id);

export function liesOn(pool: string, disk: Disk): boolean {
  return disk.used_by?.some((one) => one === `pool ${pool}` || one === `journal of pool ${pool}`) ?? false;
}

export function disksOf(facts: Facts, pool: string): Disk[] {
  return (facts.disks ?? []).filter((disk) => liesOn(pool, disk));
}

export function backingId(lun: Lun): string {
  return idOf('pool', lun.pool ?? lun.backing);
}

function edges(facts: Facts, sessions: Session[], luns: Lun[], wrong: Map<number, Wrong>): Edge[] {
  const all = new Map<string, Edge>();
  const add = (from: string, to: string, bytes: number, state: State, says: string, mistake?: Wrong) => {
    const id = `${from}>${to}`;
    const known = all.get(id);
    if (!known) all.set(id, { id, from, to, bytes, state, says, wrong: mistake });
    else {
      known.bytes += bytes;
      if (mistake && known.wrong !== 'crosses') Object.assign(known, { state, says, wrong: mistake });
    }
  };
  const center = idOf('node', facts.status.node);
  for (const session of sessions) {
    const rates = facts.moment?.sessions.get(session.id);
    const bytes = rates ? rates.bytesIn + rates.bytesOut : 0;
    const portal = idOf('portal', session.portal);
    const mistake = wrong.get(session.id);
    const { state, says } = mistake ? WRONG[mistake] : { state: 'good' as State, says: `session ${session.id}` };
    add(idOf('host', session.host), portId(session), bytes, 'good', `port of ${session.host}`);
    add(portId(session), portal, bytes, state, says, mistake);
    add(portal, center, bytes, 'good', 'all sessions of this portal');
  }
  for (const lun of luns) {
    const rates = facts.moment?.luns.get(lun.name);
    const bytes = rates ? rates.readBytes + rates.writeBytes : 0;
    const state: State = lun.state === 'online' ? 'good' : 'bad';
    add(center, idOf('lun', lun.name), bytes, state, lun.reason ?? lun.state);
    add(idOf('lun', lun.name), backingId(lun), bytes, state, lun.backing);
  }
  for (const pool of facts.pools) {
    const disks = disksOf(facts, pool.name);
    const into = [...all.values()].filter((edge) => edge.to === idOf('pool', pool.name)).reduce((sum, edge) => sum + edge.bytes, 0);
    // Which part each of several has is not known.
    for (const disk of disks) {
      add(idOf('pool', pool.name), diskId(disk), disks.length === 1 ? into : 0, diskState(disk).state === 'bad' ? 'bad' : 'good', disk.used_by?.join(', ') ?? '');
    }
  }
  return [...all.values()];
}
