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

const VERBS: Record<string, string> = { POST: 'made', PATCH: 'changed', PUT: 'set', DELETE: 'deleted' };
/** By the last part of the path. */
const ACTS: Record<string, string> = {
  resize: 'changed the size of', rename: 'renamed', restore: 'restored', purge: 'destroyed the data of', acknowledge: 'acknowledged', unacknowledge: 'took back the acknowledgement of',
  silence: 'silenced', unsilence: 'ended the silence of', test: 'tested', cancel: 'cancelled', links: 'changed a link of', password: 'changed the password of',
};
/** By the noun, where the verb of the method says it wrongly. */
const OF_NOUN: Record<string, Record<string, string>> = {
  sessions: { DELETE: 'ended' }, bench: { POST: 'started', DELETE: 'forgot' }, lab: { POST: 'started', DELETE: 'tore down' }, disks: { DELETE: 'forgot' }, tokens: { DELETE: 'took back' },
  orphans: { POST: 'adopted LUNs' }, generations: { POST: 'went back to an earlier state' }, apply: { POST: 'applied a document', PUT: 'applied a document' }, objects: { POST: 'made several objects' },
};
const OPERATIONS: Record<string, string> = { start: 'started', stop: 'stopped', reopen: 'opened', discard: 'discarded' };

/** What somebody did, in words, as they stand before the object. */
export function did(one: Pick<Audited, 'method' | 'path' | 'asked'>): string {
  const parts = (one.path.split('?')[0] ?? '').replace('/api/v1/', '').split('/');
  const [noun = ''] = parts;
  const last = parts.at(-1) ?? '';
  if (noun === 'login') return 'logged in';
  if (noun === 'logout') return 'logged out';
  if (noun === 'me') return last === 'password' ? 'changed their own password' : 'ended their other sessions';
  const asked = one.asked as { operation?: unknown } | null | undefined;
  const operation = typeof asked?.operation === 'string' ? (OPERATIONS[asked.operation] ?? asked.operation) : undefined;
  if (last === 'scrub') return `${operation ?? 'started'} a scrub of`;
  if (last === 'journal') return `${operation ?? 'changed'} the journal of`;
  // Behind the name of an object: one may have the name of an act.
  const act = parts.length > 2 ? ACTS[last] : undefined;
  if (act && one.method !== 'DELETE') return act;
  return OF_NOUN[noun]?.[one.method] ?? VERBS[one.method] ?? one.method;
}

/** Of whom what is below `alerts` is, by its name or its number. */
const OF_ALERTS: Record<string, string> = { rules: 'rule', receivers: 'receiver', silences: 'silence' };
const OF_PATH: Record<string, string> = { jobs: 'job', disks: 'disk' };

/** What an entry is about; where it does not say so, as its path has it. */
export function about(one: Pick<Audited, 'path' | 'object' | 'asked'>): { kind: string; name: string } | undefined {
  if (one.object) return one.object;
  const [noun = '', first = '', second = ''] = (one.path.split('?')[0] ?? '').replace('/api/v1/', '').split('/').map(decoded);
  const asked = one.asked as { name?: unknown } | null | undefined;
  const made = typeof asked?.name === 'string' ? asked.name : '';
  if (noun === 'alerts') {
    const kind = OF_ALERTS[first];
    return kind ? { kind, name: second || made } : first ? { kind: 'alert', name: first } : undefined;
  }
  const kind = OF_PATH[noun];
  return kind && first ? { kind, name: first } : undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A path without what says nothing: its version, and options that are off. */
export function shortPath(path: string): string {
  const [plain = '', query = ''] = path.replace('/api/v1/', '').split('?');
  const some = query.split('&').filter((part) => part && !part.endsWith('=false'));
  return some.length ? `${plain}?${some.join('&')}` : plain;
}
