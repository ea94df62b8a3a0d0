// How redundantly hosts are connected: the one rule of it, which is that of the daemon's alerts. Pure.

import type { Grant, Session } from '../api/types.ts';
import { plural } from './format.ts';
import { grouped } from './grouped.ts';
import { address } from './nics.ts';
import type { State } from './verdict.ts';

export interface Redundancy {
  /** It has a session with a target. */
  connected: boolean;
  /** From an address of the host to a portal: of the initiator and target that have the fewest. */
  least_paths: number;
}

/** Two sessions between the same two addresses are one path. */
export function redundancyOf(sessions: Session[]): Redundancy {
  const uses = grouped(sessions.filter((session) => session.target !== undefined), (session) => `${session.initiator}\n${session.target}`);
  const paths = [...uses.values()].map((own) => new Set(own.map((session) => `${address(session.from)}\n${session.portal}`)).size);
  return { connected: paths.length > 0, least_paths: paths.length ? Math.min(...paths) : 0 };
}

/** The node's sessions by host, without those that only ask for targets. */
export function pathsByHost(sessions: Session[]): Map<string, Session[]> {
  return grouped(sessions.filter((session) => session.target !== undefined), (session) => session.host);
}

/** Hosts that have one path to a target. */
export function singlePath(sessions: Session[]): string[] {
  return [...pathsByHost(sessions)].filter(([, own]) => redundancyOf(own).least_paths === 1).map(([host]) => host);
}

export interface Missing {
  /** Hosts to which something is granted and that have no session, by name. */
  hosts: string[];
  /** How many hosts have grants. */
  of: number;
}

export function missing(grants: Grant[], sessions: Session[]): Missing {
  const here = pathsByHost(sessions);
  const granted = new Set(grants.map((grant) => grant.host));
  return { hosts: [...granted].filter((host) => !here.has(host)).sort(), of: granted.size };
}

/** As tables and the map show it. */
export function pathsShown({ connected, least_paths: least }: Redundancy): { state: State; word: string } {
  if (!connected) return { state: 'off', word: 'not connected' };
  return least === 1 ? { state: 'warn', word: 'single path' } : { state: 'good', word: plural(least, 'path') };
}
