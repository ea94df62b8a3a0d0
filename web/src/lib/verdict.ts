// How the node is, in one sentence, and what to do first. Pure.

import type { Alert, Session, Status } from '../api/types.ts';
import { sentence, toDo, total } from './alerts.ts';
import { plural } from './format.ts';
import { grouped } from './grouped.ts';

export type State = 'good' | 'warn' | 'bad' | 'off';

export interface Verdict {
  state: State;
  sentence: string;
  /** What to do, the most urgent first. */
  todo: { text: string; next?: string; href?: string }[];
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

/** What to do about an alert. */
function fromAlert(alert: Alert): Verdict['todo'][number] {
  return { text: sentence(alert.cause), next: sentence(alert.next_step), href: `/alerts/${alert.id}` };
}

/** What is to be done, the most urgent first; an alert says it better than a problem of the same object. */
function whatToDo(status: Status, sessions: Session[], alerts: Alert[]): Verdict['todo'] {
  const urgent = toDo(alerts);
  const covered = (text: string) => alerts.some((alert) => alert.state !== 'resolved' && text.split(/[^\w.-]+/).includes(alert.object));
  const of = (bad: boolean) => urgent.filter((alert) => (alert.severity === 'critical') === bad).map(fromAlert);
  const known = new Set(alerts.filter((alert) => alert.rule === 'host_single_path' && alert.state !== 'resolved').map((alert) => alert.object));
  const single = singlePath(status, sessions).filter((host) => !known.has(host));
  return [
    ...of(true),
    ...status.problems.filter((text) => !covered(text)).map((text) => ({ text })),
    ...of(false),
    ...single.map((host) => ({ text: `Host ${host} has a single path: log it in to a second portal.`, href: `/hosts/${encodeURIComponent(host)}` })),
  ];
}

export function verdict(status: Status, sessions: Session[], known?: Alert[]): Verdict {
  const alerts = known ?? [];
  const todo = whatToDo(status, sessions, alerts);
  const unseen = known ? 0 : total(status.alerts);
  if (unseen) todo.unshift({ text: `${plural(unseen, 'alert')}: log in to see what is wrong.`, href: '/alerts' });
  if (status.health === 'damaged') {
    return { state: 'bad', sentence: 'Nothing is served. Its stored objects cannot be used.', todo };
  }
  const urgent = toDo(alerts);
  if (todo.length) {
    const is = urgent.some((alert) => alert.severity === 'critical') ? 'bad' : 'warn';
    return { state: is, sentence: `${summary(status, urgent)}. ${plural(todo.length, 'thing')} to do.`, todo };
  }
  const handled = alerts.filter((alert) => alert.state === 'acknowledged' || alert.state === 'silenced').length;
  const also = handled ? ` ${plural(handled, 'alert')} acknowledged or silenced.` : '';
  const data = status.counts.luns ? 'All data safe' : 'Everything serves';
  return { state: 'good', sentence: `${data}. ${connected(status, sessions)}${also}`, todo: first(status, sessions) };
}

/** What does not serve now; a problem may also be one that is to come, such as a pool that is soon full. */
function down(status: Status): string[] {
  const { luns, luns_offline: offline } = status.counts;
  const portals = status.portals.filter((portal) => portal.problem).length;
  return [
    ...(offline ? [`${offline} of ${plural(luns, 'LUN')} ${offline === 1 ? 'does' : 'do'} not serve`] : []),
    ...(portals ? [`${plural(portals, 'portal')} ${portals === 1 ? 'does' : 'do'} not listen`] : []),
  ];
}

function summary(status: Status, urgent: Alert[]): string {
  const not = down(status);
  if (not.length) return not.join(', ');
  if (urgent.some((alert) => alert.severity === 'critical')) return 'Hosts are hit or data is at risk';
  if (!status.problems.length && urgent.every((alert) => alert.rule === 'host_single_path')) return 'Everything serves, with less redundancy than there could be';
  return 'Everything serves';
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
