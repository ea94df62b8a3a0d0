// What if a part were lost: who loses what, before it happens. Pure.

import { grouped } from './grouped.ts';
import { backingId, diskId, disksOf, heldBy, idOf, partsOf, portId, type Facts, type Point } from './topology.ts';

export interface Loss {
  /** In one sentence. */
  verdict: string;
  /** Nobody loses access. */
  harmless: boolean;
  hosts: { name: string; luns: string[]; pathsLeft: number; pathsLost: number }[];
  /** What would not be there or not be reached any more. */
  lost: Set<string>;
}

export function whatIf(facts: Facts, point: Point): Loss {
  const sessions = facts.sessions.filter((session) => session.target !== undefined);
  const through = partsOf(facts);
  const dies = new Set(sessions.filter((session) => through(session).has(point.id)));
  const byHost = grouped(sessions, (session) => session.host);
  const grants = grouped(facts.grants, (grant) => grant.host);
  const { alone, shared } = poolsOn(facts, point);
  const goneLuns = new Set(facts.luns.filter((lun) => lun.state !== 'removed' && lunGoes(lun, point, alone)).map((lun) => lun.name));
  const lost = new Set<string>([point.id, ...heldBy(facts, point.id), ...[...alone].map((pool) => idOf('pool', pool))]);
  for (const name of goneLuns) lost.add(idOf('lun', name));
  const hosts: Loss['hosts'] = [];
  for (const host of new Set([...byHost.keys(), ...grants.keys()])) {
    const mine = byHost.get(host) ?? [];
    const pathsLost = mine.filter((session) => dies.has(session)).length;
    const pathsLeft = mine.length - pathsLost;
    const granted = (grants.get(host) ?? []).map((grant) => grant.lun);
    const cutOff = mine.length > 0 && pathsLeft === 0;
    const luns = [...new Set(granted.filter((lun) => cutOff || goneLuns.has(lun)))].sort();
    if (cutOff) lost.add(idOf('host', host));
    if (luns.length || pathsLost) hosts.push({ name: host, luns, pathsLeft, pathsLost });
  }
  const alive = new Set(sessions.filter((session) => !dies.has(session)).map(portId));
  for (const session of dies) if (!alive.has(portId(session))) lost.add(portId(session));
  return { ...say(point, hosts, shared), hosts: hosts.sort((a, b) => b.luns.length - a.luns.length || a.name.localeCompare(b.name)), lost };
}

/** Pools that lie on a disk alone, and those that lie on others as well. */
function poolsOn(facts: Facts, point: Point): { alone: Set<string>; shared: string[] } {
  const on = (pool: string) => disksOf(facts, pool).map(diskId);
  const here = point.kind === 'disk' ? facts.pools.map((pool) => pool.name).filter((pool) => on(pool).includes(point.id)) : [];
  return { alone: new Set(here.filter((pool) => on(pool).length === 1)), shared: here.filter((pool) => on(pool).length > 1) };
}

function lunGoes(lun: Facts['luns'][number], point: Point, pools: Set<string>): boolean {
  if (point.kind === 'node') return true;
  if (point.kind === 'disk') return lun.pool !== undefined && pools.has(lun.pool);
  if (point.kind === 'lun') return lun.name === point.name;
  return point.kind === 'pool' && backingId(lun) === point.id;
}

function say(point: Point, hosts: Loss['hosts'], shared: string[]): { verdict: string; harmless: boolean } {
  const losers = hosts.filter((host) => host.luns.length);
  const luns = new Set(losers.flatMap((host) => host.luns)).size;
  const what = point.called;
  if (losers.length) {
    const many = (n: number, one: string) => `${n} ${one}${n === 1 ? '' : 's'}`;
    return { verdict: `Without ${what}, ${many(losers.length, 'host')} would lose ${many(luns, 'LUN')}.`, harmless: false };
  }
  if (shared.length) {
    const pools = shared.length === 1 ? `pool ${shared[0]}` : `pools ${shared.join(', ')}`;
    return { verdict: `Without ${what}, ${pools} would lack one of several disks: how they are joined decides what is lost.`, harmless: false };
  }
  const fewer = hosts.some((host) => host.pathsLost);
  return { verdict: `Without ${what}, no host would lose a LUN${fewer ? ': other paths remain' : ''}.`, harmless: true };
}
