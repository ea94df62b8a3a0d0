// What alerts mean for people: their order, their words, what is to be done first. Pure.

import type { Alert, AlertCounts, Severity } from '../api/types.ts';
import { moment, plural } from './format.ts';
import type { State } from './verdict.ts';

const RANK: Record<Severity, number> = { critical: 0, warning: 1, info: 2 };
const STATE_RANK: Record<Alert['state'], number> = { firing: 0, acknowledged: 1, silenced: 2, resolved: 3 };

export function severityState(severity: Severity): State {
  return severity === 'critical' ? 'bad' : severity === 'warning' ? 'warn' : 'off';
}

/** From which severity on: nothing is worse than critical, and nothing less than info. */
export function atLeast(severity: Severity): string {
  const words: Record<Severity, string> = { critical: 'critical ones', warning: 'warnings and worse', info: 'all' };
  return words[severity];
}

/** Its state with its severity, where it still says something. */
export function alertState(alert: Alert): { state: State; word: string } {
  if (alert.state === 'resolved') return { state: 'good', word: 'over' };
  if (alert.state === 'firing') return { state: severityState(alert.severity), word: alert.severity };
  return { state: 'off', word: `${alert.severity}, ${alert.state}` };
}

/** What fires first, the worst before others, the newest before older ones. */
export function ordered(alerts: Alert[]): Alert[] {
  return [...alerts].sort(
    (a, b) => STATE_RANK[a.state] - STATE_RANK[b.state] || RANK[a.severity] - RANK[b.severity] || b.fired.localeCompare(a.fired) || b.id - a.id,
  );
}

/** Alerts that somebody has to do something about: warnings and worse that nobody takes care of. */
export function toDo(alerts: Alert[]): Alert[] {
  return ordered(alerts).filter((alert) => alert.state === 'firing' && alert.severity !== 'info');
}

/** Who takes care of it, or that nobody is told. */
export function caredFor(alert: Alert): string {
  if (alert.acknowledged) return `acknowledged by ${alert.acknowledged.by}`;
  return alert.silenced_until ? `silenced until ${moment(alert.silenced_until)}` : alert.state;
}

export function total(counts: AlertCounts | undefined): number {
  return (counts?.critical ?? 0) + (counts?.warning ?? 0) + (counts?.info ?? 0);
}

/** As the bell says it. */
export function counted(counts: AlertCounts | undefined): { state: State; word: string } {
  const { critical = 0, warning = 0, info = 0 } = counts ?? {};
  const parts = [
    critical ? `${critical} critical` : '',
    warning ? plural(warning, 'warning') : '',
    info ? `${info} to know` : '',
  ].filter(Boolean);
  return { state: critical ? 'bad' : warning ? 'warn' : 'off', word: parts.join(', ') || 'none' };
}

/** A sentence: its first letter large, a point at its end. */
export function sentence(text: string): string {
  const trimmed = text.trim().replace(/[.]+$/, '');
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}.`;
}

const STEPS: Record<string, string> = {
  fired: 'It fired',
  raised: 'It became worse',
  lowered: 'It became less bad',
  acknowledged: 'Acknowledged',
  unacknowledged: 'Nobody takes care of it any more',
  resolved: 'It is over',
};

export function stepWord(what: string): string {
  return STEPS[what] ?? what;
}
