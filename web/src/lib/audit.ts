// The audit log: what is asked of it, and what its entries mean. Pure.

import type { Audited } from '../api/types.ts';
import { cli } from './changes.ts';
import type { State } from './verdict.ts';

export interface Wanted {
  who: string;
  kind: string;
  name: string;
  /** '', 'done' or 'refused'. */
  result: string;
  /** How long ago, such as `24h`; '': all. */
  since: string;
}

export const KINDS = [
  'lun', 'target', 'host', 'grant', 'pool', 'disk', 'session', 'job', 'alert', 'rule', 'receiver', 'silence', 'bench run', 'lab bed', 'user', 'token',
];
export const SINCE: [string, string][] = [['', 'all times'], ['1h', 'the last hour'], ['24h', 'the last day'], ['7d', 'the last week'], ['30d', 'the last month']];

/** The query of the API: what is filtered is filtered there, over all entries. */
export function query(wanted: Wanted): URLSearchParams {
  const out = new URLSearchParams();
  const filter = (column: string, value: string) => value && out.append('filter', `${column}:${value}`);
  filter('who', wanted.who);
  filter('kind', wanted.kind);
  filter('name', wanted.name);
  if (wanted.result) filter('status', wanted.result === 'done' ? '2*' : '4*');
  if (wanted.since) out.set('from', `-${wanted.since}`);
  return out;
}

/** The nearest command line. */
export function command(wanted: Wanted): string {
  const object = wanted.kind && wanted.name ? ['--object', `${wanted.kind}:${wanted.name}`] : [];
  return cli('audit', 'ls', ...(wanted.who ? ['--who', wanted.who] : []), ...object, ...(wanted.since ? ['--since', wanted.since] : []));
}

/** The word is the daemon's, as all that an entry says. */
export function result(one: Pick<Audited, 'status' | 'words'>): { state: State; word: string } {
  return { state: one.status < 300 ? 'good' : one.status >= 500 ? 'bad' : 'warn', word: one.words.result };
}
