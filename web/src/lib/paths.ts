// How redundantly hosts are connected, in words: the daemon counts the paths, for its alerts and for all who ask. Pure.

import type { Grant, Host, Redundancy, Session } from '../api/types.ts';
import { plural } from './format.ts';
import { grouped } from './grouped.ts';
import type { State } from './verdict.ts';

/** The node's sessions by host, without those that only ask for targets. */
export function sessionsByHost(sessions: Session[]): Map<string, Session[]> {
  return grouped(sessions.filter((session) => session.target !== undefined), (session) => session.host);
}

export const connectedOf = (hosts: Host[]) => hosts.filter((host) => host.redundancy.connected);

/** Hosts that have one path to a target. */
export function singlePath(hosts: Host[]): string[] {
  return hosts.filter((host) => host.redundancy.least_paths === 1).map((host) => host.name);
}

export interface Missing {
  /** Hosts to which something is granted and that have no session, by name: those that are machines, and not whoever comes. */
  hosts: string[];
  /** How many hosts have grants. */
  of: number;
}

export function missing(grants: Grant[], hosts: Host[]): Missing {
  const here = new Set(connectedOf(hosts).map((host) => host.name));
  const anybody = new Set(hosts.filter((host) => host.iqn.includes('*')).map((host) => host.name));
  const granted = new Set(grants.map((grant) => grant.host).filter((name) => !anybody.has(name)));
  return { hosts: [...granted].filter((host) => !here.has(host)).sort(), of: granted.size };
}

/** As tables and the map show it. */
export function pathsShown({ connected, least_paths: least }: Redundancy): { state: State; word: string } {
  if (!connected) return { state: 'off', word: 'not connected' };
  return least === 1 ? { state: 'warn', word: 'single path' } : { state: 'good', word: plural(least, 'path') };
}
