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

export const KINDS = ['lun', 'target', 'host', 'grant', 'pool', 'user', 'token', 'session'];
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

export function result(one: Audited): { state: State; word: string } {
  if (one.status < 300) return { state: 'good', word: 'done' };
  const word = one.status === 401 || one.status === 403 ? 'not allowed' : one.status >= 500 ? 'failed' : 'refused';
  return { state: one.status >= 500 ? 'bad' : 'warn', word };
}

const VIA: Record<string, string> = {
  socket: 'unix socket', session: 'browser or login', token: 'token', token_file: 'token of the file', loopback: 'this machine', nobody: 'nobody known',
};

export function via(word: string): string {
  return VIA[word] ?? word;
}

const VERBS: Record<string, string> = { POST: 'made', PATCH: 'changed', PUT: 'set', DELETE: 'took away' };

/** What somebody did, in words as far as they go. */
export function did(one: Audited): string {
  const last = one.path.split('?')[0]?.split('/').at(-1) ?? '';
  if (one.path.startsWith('/api/v1/login')) return 'logged in';
  if (one.path.startsWith('/api/v1/logout')) return 'logged out';
  if (['resize', 'rename', 'restore', 'purge', 'scrub', 'journal', 'acknowledge', 'silence', 'unsilence', 'test', 'cancel'].includes(last)) return last;
  return VERBS[one.method] ?? one.method;
}
