// Which alert is about which problem that the node names. Pure.

import type { Alert } from '../api/types.ts';

/** The kinds of which problems speak, as they call them. */
const CALLED: Record<string, string> = { lun: 'LUN', pool: 'pool', portal: 'portal', host: 'host', target: 'target', disk: 'disk', bay: 'bay' };
/** A kind with a name behind it; bays of several enclosures have the same numbers. */
const NAMED = new RegExp(`(?<![\\w.-])(${Object.values(CALLED).join('|')}) (\\S+(?: of enclosure \\S+)?)`);

/** What it is about: the first object that it names, such as `pool fast` or `portal 10.0.1.1:3260`. */
export function subjectOf(text: string): string | undefined {
  const [, kind, name] = NAMED.exec(text) ?? [];
  return name && `${kind} ${name.replace(/[,;:.)]+$/, '')}`;
}

/** The problem is of the object of this alert, by kind and name: a bay is called `2`, and so may be anything. */
export function isAbout(problem: string, alert: Pick<Alert, 'kind' | 'object' | 'cause'>): boolean {
  if (alert.cause && problem.startsWith(alert.cause)) return true;
  const subject = subjectOf(problem);
  if (subject === undefined) return false;
  // People know a disk by another name than alerts do: its cause has that one.
  const own = alert.kind === 'disk' ? subjectOf(alert.cause) : `${CALLED[alert.kind] ?? alert.kind} ${alert.object}`;
  return subject === own;
}
