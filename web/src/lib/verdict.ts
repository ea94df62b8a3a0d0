// How the node is, in one sentence, and what to do first. Pure.

import type { Session, Status } from '../api/types.ts';
import { plural } from './format.ts';
import { grouped } from './grouped.ts';

export type State = 'good' | 'warn' | 'bad' | 'off';

export interface Verdict {
  state: State;
  sentence: string;
  /** What to do, the most urgent first. */
  todo: { text: string; href?: string }[];
}

/** The node's sessions by host, without those that only ask for targets. */
export function pathsByHost(sessions: Session[]): Map<string, Session[]> {
  return grouped(sessions.filter((session) => session.target !== undefined), (session) => session.host);
}

export interface Paths {
  /** Sessions: to the target to which it has the fewest. */
  count: number;
  /** It reaches a target over one portal only. */
  single: boolean;
}

/** How redundantly a host is connected, by the target to which it has the fewest paths. */
export function pathsOf(sessions: Session[]): Paths {
  const targets = new Map<string, Session[]>();
  for (const session of sessions) {
    const key = session.target;
    if (key !== undefined) targets.set(key, [...(targets.get(key) ?? []), session]);
  }
  const all = [...targets.values()];
  const portals = (paths: Session[]) => new Set(paths.map((path) => path.portal)).size;
  return {
    count: all.length ? Math.min(...all.map((paths) => paths.length)) : 0,
    single: all.some((paths) => portals(paths) < 2),
  };
}

/** The node has portals for more than one path. */
export function hasSeveralPortals(status: Status | undefined): boolean {
  return (status?.portals.filter((portal) => !portal.problem).length ?? 0) > 1;
}

/** Hosts with a single path, where the node has portals for more. */
export function singlePath(status: Status, sessions: Session[]): string[] {
  if (!hasSeveralPortals(status)) return [];
  return [...pathsByHost(sessions)].filter(([, paths]) => pathsOf(paths).single).map(([host]) => host);
}

/** As tables and the map show it. */
export function pathsShown(paths: Paths, several: boolean): { state: State; word: string } {
  if (paths.count === 0) return { state: 'off', word: 'not connected' };
  if (paths.single && several) return { state: 'warn', word: 'single path' };
  return { state: 'good', word: paths.count === 1 ? 'one path' : plural(paths.count, 'path') };
}

export function verdict(status: Status, sessions: Session[]): Verdict {
  const single = singlePath(status, sessions);
  const todo: Verdict['todo'] = status.problems.map((text) => ({ text }));
  for (const host of single) {
    todo.push({ text: `Host ${host} has a single path: log it in to a second portal.`, href: `/hosts/${encodeURIComponent(host)}` });
  }
  if (status.health === 'damaged') {
    return { state: 'bad', sentence: 'Nothing is served. Its stored objects cannot be used.', todo };
  }
  if (todo.length) {
    const what = status.problems.length ? 'Not everything serves' : 'Everything serves, with less redundancy than there could be';
    return { state: 'warn', sentence: `${what}. ${plural(todo.length, 'thing')} to do.`, todo };
  }
  return { state: 'good', sentence: `Everything serves. ${connected(status, sessions)}`, todo: first(status, sessions) };
}

function connected(status: Status, sessions: Session[]): string {
  const hosts = pathsByHost(sessions);
  if (hosts.size === 0) return status.counts.luns ? 'No host is connected.' : 'There is no LUN yet.';
  const many = [...hosts.values()].every((paths) => !pathsOf(paths).single);
  const which = hosts.size === 1 ? '' : 'all ';
  const paths = many ? `, ${which}with two paths or more` : '';
  return `${plural(hosts.size, 'host')} connected${paths}. Nothing to do.`;
}

function first(status: Status, sessions: Session[]): Verdict['todo'] {
  if (status.counts.luns === 0) return [{ text: 'Create the first share.', href: '/luns?do=create' }];
  if (pathsByHost(sessions).size === 0) return [{ text: 'Connect a host: each LUN shows what to type there.', href: '/luns' }];
  return [];
}
