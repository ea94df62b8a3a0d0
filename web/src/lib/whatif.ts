// What if a part were lost: who loses what, before it happens. Pure.

import type { Session } from '../api/types.ts';
import { bytes, plural } from './format.ts';
import { grouped } from './grouped.ts';
import { goneWith, type Gone } from './lying.ts';
import { address, machineKey, machineNames } from './nics.ts';
import { backingId, heldBy, idOf, partsOf, portId, type Facts, type Point } from './topology.ts';

export interface Loss {
  /** In one sentence. */
  verdict: string;
  /** Nobody loses access. */
  harmless: boolean;
  /** Machines. Paths: to the LUN that has the fewest left. */
  hosts: { name: string; host: string; luns: string[]; pathsLeft: number; pathsLost: number }[];
  /** What would not be there or not be reached any more. */
  lost: Set<string>;
}

const NOTHING: Gone = { luns: new Set(), pools: new Set(), shared: [], unsaved: [] };

export function whatIf(facts: Facts, point: Point): Loss {
  const sessions = facts.sessions.filter((session) => session.target !== undefined);
  const through = partsOf(facts);
  const dies = new Set(sessions.filter((session) => through(session).has(point.id)));
  const byHost = grouped(sessions, (session) => session.host);
  const grants = grouped(facts.grants, (grant) => grant.host);
  const reach = reaching(sessions);
  const nameOf = machineNames(sessions);
  const gone = point.kind === 'disk' ? goneWith(point.id, facts.pools, facts.luns, facts.disks ?? []) : NOTHING;
  const served = facts.luns.filter((lun) => lun.state !== 'removed');
  const goneLuns = new Set(served.filter((lun) => gone.luns.has(lun.name) || lunGoes(lun, point)).map((lun) => lun.name));
  const lost = new Set<string>([point.id, ...heldBy(facts, point.id), ...[...gone.pools].map((pool) => idOf('pool', pool))]);
  for (const name of goneLuns) lost.add(idOf('lun', name));
  const hosts: Loss['hosts'] = [];
  for (const host of new Set([...byHost.keys(), ...grants.keys()])) {
    const mine = byHost.get(host) ?? [];
    const granted = [...new Set((grants.get(host) ?? []).map((grant) => grant.lun))];
    if (mine.length && mine.every((session) => dies.has(session))) lost.add(idOf('host', host));
    // Another machine of the host is no way to a LUN for this one. One that is not connected has what is granted.
    const machines = mine.length ? [...grouped(mine, machineKey).values()] : [[]];
    for (const own of machines) {
      const [first] = own;
      // A machine may reach one LUN over this part alone, and others over more: it is asked of each.
      const each = granted.map((lun) => ({ lun, ...counted((first && reach.get(`${machineKey(first)}\n${lun}`)) ?? [], dies) }));
      const luns = each.filter(({ lun, left, lost }) => goneLuns.has(lun) || (left === 0 && lost > 0)).map(({ lun }) => lun).sort();
      const all = counted(own, dies);
      const [worst = all] = each.filter((one) => one.lost > 0).sort((x, y) => x.left - y.left);
      if (luns.length || all.lost) hosts.push({ name: first ? nameOf(first) : host, host, luns, pathsLeft: worst.left, pathsLost: worst.lost });
    }
  }
  const alive = new Set(sessions.filter((session) => !dies.has(session)).map(portId));
  for (const session of dies) if (!alive.has(portId(session))) lost.add(portId(session));
  return { ...say(point, hosts, gone, goneLuns), hosts: hosts.sort((a, b) => b.luns.length - a.luns.length || a.name.localeCompare(b.name)), lost };
}

/** By machine and LUN: the sessions that have it. */
function reaching(sessions: Session[]): Map<string, Session[]> {
  const each = sessions.flatMap((session) => session.luns.map((one) => ({ key: `${machineKey(session)}\n${one.lun}`, session })));
  return new Map([...grouped(each, ({ key }) => key)].map(([key, own]) => [key, own.map(({ session }) => session)]));
}

/** Paths, as the daemon counts them: two sessions on one route are one. */
function counted(sessions: Session[], dies: Set<Session>): { left: number; lost: number } {
  const routes = (some: Session[]) => new Set(some.map((session) => `${address(session.from)}\n${session.portal}`)).size;
  const left = routes(sessions.filter((session) => !dies.has(session)));
  return { left, lost: routes(sessions) - left };
}

function lunGoes(lun: Facts['luns'][number], point: Point): boolean {
  if (point.kind === 'node') return true;
  if (point.kind === 'lun') return lun.name === point.name;
  return point.kind === 'pool' && backingId(lun) === point.id;
}

/** What hosts were answered is stable, and is in a journal only. */
function unsavedSaid(gone: Gone): string {
  return gone.unsaved.map((one) => ` ${bytes(one.bytes)} of acknowledged writes of pool ${one.pool} are in its journal only, and would be lost.`).join('');
}

function say(point: Point, hosts: Loss['hosts'], gone: Gone, goneLuns: Set<string>): { verdict: string; harmless: boolean } {
  const losers = hosts.filter((host) => host.luns.length);
  const luns = new Set(losers.flatMap((host) => host.luns)).size;
  const what = point.called;
  if (losers.length) {
    const of = plural(new Set(losers.map((loser) => loser.host)).size, 'host');
    const who = losers.some((loser) => loser.name !== loser.host) ? `${plural(losers.length, 'initiator')} of ${of}` : of;
    return { verdict: `Without ${what}, ${who} would lose ${plural(luns, 'LUN')}.${unsavedSaid(gone)}`, harmless: false };
  }
  if (gone.shared.length) {
    const pools = gone.shared.length === 1 ? `pool ${gone.shared[0]}` : `pools ${gone.shared.join(', ')}`;
    return { verdict: `Without ${what}, ${pools} would lack one of several disks: how they are joined decides what is lost.`, harmless: false };
  }
  if (goneLuns.size && (point.kind === 'disk' || point.kind === 'pool')) {
    return { verdict: `Without ${what}, ${plural(goneLuns.size, 'LUN')} that nobody uses would be lost.${unsavedSaid(gone)}`, harmless: false };
  }
  const fewer = hosts.some((host) => host.pathsLost);
  return { verdict: `Without ${what}, no host would lose a LUN${fewer ? ': other paths remain' : ''}.`, harmless: true };
}
