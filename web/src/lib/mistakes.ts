// Paths that are a mistake: they cross, or two of them are one. As `causeway doctor` sees them, from the node's side. Pure.

import type { Session, Status, Target } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { grouped } from './grouped.ts';
import { machineKey, machineNames, nicName, portalKey } from './nics.ts';
import { routeOf } from './sessions.ts';

/** They cross and carry load; they cross, and carry none now; two are one. */
export type Wrong = 'crosses' | 'would cross' | 'doubled';

export interface Mistake {
  wrong: Wrong;
  /** The machine, as people call it. */
  host: string;
  target: string;
  /** Its sessions. */
  sessions: number[];
  says: string;
  because: string;
  remedy: string;
  /** What to type on the host, and which of its points says the same. */
  doctor: string;
  point: string;
}

/** Below it a session is only kept alive, in bytes a second: a standby path is no mistake. */
const USED_BYTES = 16 * 1024;
/** Of what the host moves to the target: less is no path that the host shares its load over. */
const USED_PART = 0.05;
const ROUTES_SAID = 4;

/** Sessions that carry their part of the load now. Which of the others are standby is known to their host alone. */
function used(sessions: Session[], moment: Moment | undefined): Session[] {
  const bytes = (session: Session) => {
    const rates = moment?.sessions.get(session.id);
    return rates ? rates.bytesIn + rates.bytesOut : 0;
  };
  const whole = sessions.reduce((sum, session) => sum + bytes(session), 0);
  return sessions.filter((session) => bytes(session) >= Math.max(USED_BYTES, whole * USED_PART));
}

/** Paths that stand by: of machines that plan theirs, those that carry nothing while others to the same target do. */
export function standingBy(sessions: Session[], moment: Moment | undefined): Set<number> {
  const all = grouped(sessions.filter((session) => session.target !== undefined), (session) => `${machineKey(session)}\n${session.target}`);
  const bytes = (session: Session) => {
    const rates = moment?.sessions.get(session.id);
    return rates ? rates.bytesIn + rates.bytesOut : 0;
  };
  return new Set([...all.values()].flatMap((paths) => {
    const whole = paths.reduce((sum, session) => sum + bytes(session), 0);
    return whole < USED_BYTES ? [] : paths.filter((session) => session.nic?.planned && bytes(session) < whole * USED_PART).map((session) => session.id);
  }));
}

/** Which of both ends a session joins: a NIC of the host, and one of the node. */
type Ends = (session: Session) => { from: string; to: string; route: string };

const endsIn = (status: Status | undefined): Ends => (session) => {
  const [from, to] = [nicName(session), portalKey(status, session.portal)];
  return { from, to, route: `${from}\n${to}` };
};

/**
 * Routes whose port goes to another portal, too, and whose portal is reached from another port, too. Where only one of
 * both is so, one end may be faster than the other: that is a fan, not a mesh.
 */
function crossing(sessions: Session[], ends: Ends): Session[] {
  const portals = grouped(sessions, (session) => ends(session).from);
  const ports = grouped(sessions, (session) => ends(session).to);
  const several = (some: Session[] | undefined) => new Set((some ?? []).map((one) => ends(one).route)).size > 1;
  return sessions.filter((session) => several(portals.get(ends(session).from)) && several(ports.get(ends(session).to)));
}

function doubled(sessions: Session[], ends: Ends): Session[] {
  const routes = grouped(sessions, (session) => ends(session).route);
  return sessions.filter((session) => (routes.get(ends(session).route)?.length ?? 0) > 1);
}

function said(sessions: Session[]): string {
  const routes = [...new Set(sessions.map(routeOf))].sort();
  const more = routes.length - ROUTES_SAID;
  return routes.slice(0, ROUTES_SAID).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** The line to type on the host. */
function doctor(sessions: Session[], target: string, targets: Target[]): string {
  const known = targets.find((one) => one.name === target);
  const portals = [...new Set(sessions.map((session) => session.portal))].sort().join(',');
  return `causeway doctor iscsi://${portals}/${known?.iqn ?? target}/${sessions[0]?.luns?.[0]?.lun_id ?? 0}`;
}

/** Of each machine and target, what is wrong with its paths. */
export function mistakes(sessions: Session[], moment?: Moment, targets: Target[] = [], status?: Status): Mistake[] {
  const found: Mistake[] = [];
  const ends = endsIn(status);
  const all = grouped(sessions.filter((session) => session.target !== undefined), (session) => `${machineKey(session)}\n${session.target}`);
  const nameOf = machineNames(sessions);
  for (const paths of all.values()) {
    const [host, target] = [paths[0] ? nameOf(paths[0]) : '', paths[0]?.target ?? ''];
    const about = (wrong: Mistake['wrong'], of: Session[]) => ({ wrong, host, target, sessions: of.map((one) => one.id), doctor: doctor(paths, target, targets) });
    const busy = used(paths, moment);
    const loaded = crossing(busy, ends);
    // A host that plans its paths has others stand by; of the rest it is not known, and any of them may be used.
    const across = loaded.length ? loaded : crossing(paths.filter((session) => !session.nic?.planned || busy.includes(session)), ends);
    if (across.length) {
      found.push({
        ...about(loaded.length ? 'crosses' : 'would cross', across),
        says: loaded.length ? `Paths of ${host} to ${target} cross: ${said(across)}.` : `Paths of ${host} to ${target} would cross under load: ${said(across)}.`,
        because: 'Two senders that fill one port overflow the buffer of the switch: throughput falls by up to 96 %.',
        remedy: 'Pair each port of the host with one portal, and let the other paths stand by. Our initiator does so by itself: leave its planner on (no --no-plan).',
        point: 'points 5 and 6, “mesh”',
      });
    }
    const twice = doubled(paths, ends);
    if (twice.length) {
      found.push({
        ...about('doubled', twice),
        says: `${host} is logged in to ${target} more than once on the same route: ${said(twice)}.`,
        because: 'They fail together, and are no redundancy.',
        remedy: 'Log one of them out, and log in over another portal from another port of the host.',
        point: 'point 5, “second-path”',
      });
    }
  }
  return found;
}

/** What is wrong with each session that has a part in a mistake. */
export function wrongOf(found: Mistake[]): Map<number, Wrong> {
  // The worse comes last.
  const rank: Wrong[] = ['would cross', 'doubled', 'crosses'];
  const worse = [...found].sort((a, b) => rank.indexOf(a.wrong) - rank.indexOf(b.wrong));
  return new Map(worse.flatMap((one) => one.sessions.map((id): [number, Wrong] => [id, one.wrong])));
}
