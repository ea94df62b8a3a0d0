// How the node is, in one sentence, and what to do first. Pure.

import type { Alert, Grant, Host, NotSafe, Status } from '../api/types.ts';
import { isAbout } from './about.ts';
import { caredFor, sentence, toDo } from './alerts.ts';
import { fromAlerts, fromSingle, named, type ToDo } from './alike.ts';
import { plural } from './format.ts';
import { connectedOf, missing, singlePath, type Missing } from './paths.ts';
import { poolWord } from './pools.ts';

export type State = 'good' | 'warn' | 'bad' | 'off';

export interface Verdict {
  state: State;
  sentence: string;
  /** What to do, the most urgent first. */
  todo: ToDo[];
  /** What is wrong and somebody takes care of. */
  cared: { text: string; href: string }[];
  /** LUNs that lose something, where the sentence does not say it: as the node says it. */
  unsafe: string[];
}

/** What is to be done next stands once, behind the last of those that have it in common. */
export function nextOnce(todo: Verdict['todo']): Verdict['todo'] {
  return todo.map(({ next, ...one }, at) => (next === undefined || next === todo[at + 1]?.next ? one : { ...one, next }));
}

/** What people are told of a host that has grants and no session: it may be off, or cut off. */
function fromMissing({ hosts, of }: Missing): Verdict['todo'] {
  if (!hosts.length) return [];
  const [one] = hosts;
  const text = `${hosts.length} of ${plural(of, 'host')} that ${of === 1 ? 'has' : 'have'} grants ${hosts.length === 1 ? 'is' : 'are'} not connected: ${named(hosts)}.`;
  const next = 'Where it is on, all its paths are cut: look at its networks. Each LUN shows what to type to connect.';
  return [{ text, next, href: hosts.length === 1 && one ? `/hosts/${encodeURIComponent(one)}` : '/hosts?sort=state' }];
}

/** Of a host with a single path: the least of warnings, which the sentence names last. */
const isOfPath = (alert: Alert) => alert.rule === 'host_single_path';

/** A second portal that it could log in to. */
const hasAnother = (status: Status) => status.portals.filter((portal) => !portal.problem).length > 1;

/** What nobody chose: LUNs of a pool without a journal, of which no field says how their writes are kept. */
function fromDefaults(unsafe: NotSafe[]): Verdict['todo'] {
  return unsafe.filter((some) => some.by_default).map((some) => {
    const [one] = some.names;
    const next = 'Nobody chose that. Give the pool a journal, or set cache=write-through; where it is meant, cache=volatile says so.';
    return { text: `${some.text}.`, next, href: some.luns === 1 && one ? `/luns/${encodeURIComponent(one)}` : '/luns' };
  });
}

/** How the node says what its LUNs risk: `cache = "volatile" as asked for in LUN db: ...`. */
const RISK = /^\w+ = "[^"]*" (by default \(|as asked for )/;

/** What the node is to say of itself besides: not once more which data is not safe, which the verdict says. */
export function notesBeside({ notes = [], not_safe = [] }: Pick<Status, 'notes' | 'not_safe'>): string[] {
  const isSaid = (note: string) => {
    const [, how] = RISK.exec(note) ?? [];
    return not_safe.some((some) => some.text === note || (how !== undefined && some.lost_with === 'power' && some.by_default === how.startsWith('by default')));
  };
  return notes.filter((note) => !isSaid(note));
}

/** Trouble that the node names and no open alert is about. */
function unalerted(status: Status, alerts: Alert[]): string[] {
  const open = alerts.filter((alert) => alert.state !== 'resolved');
  return status.problems.filter((text) => !open.some((alert) => isAbout(text, alert)));
}

/** What is to be done, the most urgent first; an alert says it better than a problem of the same object. */
function whatToDo(status: Status, hosts: Host[], alerts: Alert[]): Verdict['todo'] {
  const urgent = toDo(alerts);
  const of = (bad: boolean, single = false) => fromAlerts(urgent.filter((alert) => (alert.severity === 'critical') === bad && (bad || isOfPath(alert) === single)));
  const open = alerts.filter((alert) => alert.state !== 'resolved');
  const known = new Set(open.filter(isOfPath).map((alert) => alert.object));
  return [
    ...of(true),
    ...unalerted(status, alerts).map((text) => ({ text })),
    ...of(false),
    ...of(false, true),
    ...fromSingle(singlePath(hosts).filter((host) => !known.has(host)), hasAnother(status)),
  ];
}

/** Trouble that is still there and that somebody has acknowledged or silenced: what hits hosts, and what the node names itself. */
function whatIsCaredFor(status: Status, alerts: Alert[]): Verdict['cared'] {
  const some = alerts.filter((alert) => alert.state === 'acknowledged' || alert.state === 'silenced');
  return some
    .filter((alert) => alert.severity === 'critical' || status.problems.some((text) => isAbout(text, alert)))
    .map((alert) => ({ text: `${sentence(alert.cause).slice(0, -1)} (${caredFor(alert)}).`, href: `/alerts/${alert.id}` }));
}

export function verdict(status: Status, hosts: Host[], known?: Alert[], grants: Grant[] = []): Verdict {
  const alerts = known ?? [];
  const gone = missing(grants, hosts);
  const cared = whatIsCaredFor(status, alerts);
  const todo = whatToDo(status, hosts, alerts);
  // Before the first host is connected there is one thing to do, which is said below.
  if (connectedOf(hosts).length > 0 || todo.length || cared.length) todo.push(...fromMissing(gone));
  const notSafe = status.not_safe ?? [];
  const unsafe = notSafe.map((some) => some.text);
  // Who has not logged in knows how many there are.
  const { critical = 0, warning = 0 } = known ? {} : (status.alerts ?? {});
  if (critical + warning) todo.unshift({ text: `${plural(critical + warning, 'alert')}: log in to see what is wrong.`, href: '/alerts' });
  if (status.health === 'damaged') {
    return { state: 'bad', sentence: 'Nothing is served. Its stored objects cannot be used.', todo, cared, unsafe };
  }
  const isBad = critical > 0 || down(status).length > 0 || alerts.some((alert) => alert.state !== 'resolved' && alert.severity === 'critical');
  if (todo.length || cared.length || isBad || status.health !== 'ok') {
    todo.push(...fromDefaults(notSafe));
    const what = todo.length ? ` ${plural(todo.length, 'thing')} to do.` : cared.length ? ' Nothing else to do.' : '';
    // What nobody chose is something to do already.
    const unsafe = notSafe.filter((some) => !some.by_default).map((some) => some.text);
    return { state: isBad ? 'bad' : 'warn', sentence: `${summary(status, hosts, alerts, cared, gone, critical, todo.length === 0)}.${what}`, todo, cared, unsafe };
  }
  const handled = alerts.filter((alert) => alert.state === 'acknowledged' || alert.state === 'silenced').length;
  const paused = status.counts.targets_in_maintenance;
  const also = [handled ? ` ${plural(handled, 'alert')} acknowledged or silenced.` : '', paused ? ` ${plural(paused, 'target')} in maintenance.` : ''].join('');
  const chosen = unsafe.length ? `Not all data is safe: ${unsafe.join('; ')}` : 'All data safe';
  const data = status.counts.luns ? chosen : 'Everything serves';
  // Nobody knows whether hosts are off or cut off: that is not good.
  const state = gone.hosts.length || unsafe.length ? 'warn' : 'good';
  const defaults = fromDefaults(notSafe);
  return { state, sentence: `${data}. ${connected(status, hosts, defaults.length)}${also}`, todo: [...first(status, hosts, gone), ...defaults], cared, unsafe: [] };
}

/** What does not serve now; a problem may also be one that is to come, such as a pool that is soon full. */
function down(status: Status): string[] {
  const { luns, luns_offline: offline } = status.counts;
  const portals = status.portals.filter((portal) => portal.problem).length;
  const away = status.pools.filter((pool) => AWAY.includes(pool.state) || (pool.state === 'full' && !pool.members?.length));
  const journals = status.pools.filter((pool) => pool.journal && pool.journal.state !== 'open');
  return [
    ...(offline ? [`${offline} of ${plural(luns, 'LUN')} ${offline === 1 ? 'does' : 'do'} not serve`] : []),
    ...away.map((pool) => `pool ${pool.name} ${pool.state === 'full' || pool.state === 'missing' ? 'is ' : ''}${poolWord(pool)}`),
    ...journals.map(({ name, journal }) => `the journal of pool ${name} ${journal?.full ? 'is full' : journal?.state === 'missing' ? 'is missing' : 'has failed'}`),
    ...(portals ? [`${plural(portals, 'portal')} ${portals === 1 ? 'does' : 'do'} not listen`] : []),
  ];
}

/** A pool in one of these states serves nothing. */
const AWAY = ['missing', 'silent', 'unusable'];

const large = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** The worst alert by its title, and how many there are besides. */
function titled(some: Alert[], what: string): string {
  const more = some.length - 1;
  return `${some[0]?.title ?? ''}${more ? `, and ${plural(more, `more ${what}`)}` : ''}`;
}

/** The most important of it, in the order in which it is to be done. */
function summary(status: Status, hosts: Host[], alerts: Alert[], cared: Verdict['cared'], gone: Missing, unseen: number, nothing: boolean): string {
  const not = down(status);
  const urgent = toDo(alerts);
  const critical = urgent.filter((alert) => alert.severity === 'critical');
  const [only] = cared;
  const known = only && cared.length === 1 ? only.text.slice(0, -1) : `${cared.length} known troubles are not over`;
  if (only && nothing && cared.length === 1) return known;
  if (not.length) return large(not.join(', '));
  if (critical.length) return titled(critical, 'critical alert');
  if (unseen) return plural(unseen, 'critical alert');
  if (only) return known;
  if (status.health !== 'ok' && !status.problems.length && !urgent.length) return `The node says that it is ${status.health}`;
  return lesser(status, hosts, alerts, urgent, gone);
}

/** What is wrong while everything serves. */
function lesser(status: Status, hosts: Host[], alerts: Alert[], warnings: Alert[], gone: Missing): string {
  const problems = unalerted(status, alerts);
  if (problems.length) {
    const low = status.pools.find((pool) => pool.state === 'low' && problems[0]?.includes(`pool ${pool.name} `));
    // The others are sentences of their own.
    return `Everything serves${low ? `, but pool ${low.name} is nearly full` : ''}`;
  }
  const others = warnings.filter((alert) => !isOfPath(alert));
  if (others.length) return `Everything serves, but ${titled(others, 'warning').replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase())}`;
  const single = Math.max(singlePath(hosts).length, warnings.length);
  if (single) return `Everything serves, but ${single} of ${plural(Math.max(single, connectedOf(hosts).length), 'host')} ${single === 1 ? 'has' : 'have'} a single path`;
  if (!gone.hosts.length) return 'Everything serves';
  return `The node serves, but ${gone.hosts.length} of ${plural(gone.of, 'host')} that ${gone.of === 1 ? 'has' : 'have'} grants ${gone.hosts.length === 1 ? 'is' : 'are'} not connected`;
}

function connected(status: Status, all: Host[], defaults: number): string {
  const hosts = connectedOf(all);
  if (hosts.length === 0) return status.counts.luns ? 'No host is connected.' : 'There is no LUN yet.';
  // One is left only where somebody takes care of it.
  const single = singlePath(hosts).length;
  const which = hosts.length === 1 ? '' : 'all ';
  const paths = single ? `, ${single === hosts.length ? which : `${single} of them `}with a single path` : `, ${which}with two paths or more`;
  return `${plural(hosts.length, 'host')} connected${paths}. ${defaults ? plural(defaults, 'thing') : 'Nothing'} to do.`;
}

function first(status: Status, hosts: Host[], gone: Missing): Verdict['todo'] {
  if (status.counts.luns === 0) return [{ text: 'Create the first share.', href: '/luns?do=create' }];
  if (connectedOf(hosts).length > 0) return [];
  return [...fromMissing(gone), { text: 'Connect a host: each LUN shows what to type there.', href: '/luns' }];
}
