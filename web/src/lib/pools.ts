// What a pool's state means, and how full it is. Pure.

import type { Member, Pool } from '../api/types.ts';
import { bytes, seconds } from './format.ts';
import type { State } from './verdict.ts';

export function poolState(pool: Pool): State {
  if (['full', 'missing', 'silent', 'unusable'].includes(pool.state)) return 'bad';
  if (pool.state === 'low' || pool.health?.severity === 'warning' || pool.overcommitted_bytes) return 'warn';
  return pool.health?.severity === 'error' ? 'bad' : 'good';
}

const WORDS: Record<Pool['state'], string> = {
  ok: 'has room',
  low: 'nearly full',
  full: 'full',
  missing: 'missing',
  silent: 'does not answer',
  unusable: 'cannot be used',
};

export function poolWord(pool: Pool): string {
  if (pool.state === 'ok' && pool.overcommitted_bytes) return 'overcommitted';
  if (pool.state === 'ok' && pool.health && pool.health.severity !== 'ok') return `${pool.health.system}: ${pool.health.severity}`;
  return WORDS[pool.state];
}

type Room = Pick<Pool, 'total' | 'used' | 'available'>;

/** What can be used, in bytes, as alerts count it. */
export function usable(pool: Room): number {
  return pool.used + pool.available;
}

/** What the file system keeps for itself: nobody can use it, and it is not full. */
export function reserved(pool: Room): number {
  return Math.max(0, pool.total - usable(pool));
}

/** The part that is in use of what can be used, 0 to 1. */
export function fill(pool: Room): number {
  return usable(pool) > 0 ? pool.used / usable(pool) : 0;
}

/** `3 GiB of 20 GiB free`, with what is kept back where that is some. */
export function roomSaid(pool: Room): string {
  const kept = reserved(pool);
  return `${bytes(pool.available)} of ${bytes(usable(pool))} free${kept ? `, ${bytes(kept)} more reserved by the file system` : ''}`;
}

/** Of a journal: the part that is in use, 0 to 1. */
export function journalFill(journal: { size_bytes: number; used_bytes: number }): number {
  return journal.size_bytes > 0 ? journal.used_bytes / journal.size_bytes : 0;
}

const LAYOUTS: Record<string, string> = {
  directory: 'a directory: each LUN is a file, thin or thick',
  span: 'span: a LUN lies on as few members as it can, and is lost with any of those',
  stripe: 'stripe: units of 64 KiB take turns over all members, and a lost one costs every LUN',
  rbd: 'Ceph RBD: each LUN is an image, kept as often as the cluster says',
};

/** How LUNs lie in it, and what that costs. */
export const layoutSaid = (layout: string) => LAYOUTS[layout] ?? layout;

/** What LUNs may still have of a member, without what the pool keeps there for itself; nothing where it cannot be read. */
export function memberFree({ total, members = [] }: Pick<Pool, 'total' | 'members'>, { size_bytes: size, taken_bytes: taken }: Pick<Member, 'size_bytes' | 'taken_bytes'>): number | undefined {
  if (size === undefined) return undefined;
  const all = members.reduce((sum, one) => sum + (one.size_bytes ?? NaN), 0);
  const own = Number.isNaN(all) ? 0 : Math.max(0, all - total) / members.length;
  return Math.max(0, size - own - taken);
}

const AWAY: [string, string][] = [
  ['present', ''],
  ['absent', 'Bring it back: it is taken back by itself if it missed nothing.'],
  ['stale', 'It is not taken back. Find the one that was here last.'],
  ['diverged', 'It is not taken back: what it has since then, the others do not have.'],
  ['twice', 'Take one of them away.'],
];

/** What to do about a member that cannot be used. */
export function memberNext({ state, event, last_event: last }: Pick<Member, 'state' | 'event' | 'last_event'>): string {
  if (state === 'present') return '';
  const next = AWAY.find(([word]) => state.startsWith(word))?.[1] ?? 'It is not used. Its LUNs are offline until it is as it was.';
  return `${next} ${event === undefined || event === last ? `Last event ${last}.` : `Event ${event} of ${last}.`}`;
}

/** What an acknowledged write of a LUN has behind it where nobody says how its writes are kept: as the daemon chooses `cache`. */
export function acknowledged(pool: Pick<Pool, 'journal' | 'layout'>): string {
  if (pool.journal) return 'the journal of its pool';
  return pool.layout === 'rbd' ? 'stable media: the cluster keeps it' : 'memory until the host flushes';
}

const DAY = 86_400;

type Coming = Pick<Pool, 'forecast' | 'full_in_seconds'>;

/** When it is full, in one sentence: by the last hour where that is within a day, else by the history of days. */
export function forecast(pool: Coming): string {
  const soon = pool.full_in_seconds;
  const hour = soon === undefined ? undefined : `full in ${seconds(soon)} at the rate of the last hour`;
  if (hour && soon !== undefined && soon < DAY) return hour;
  return pool.forecast?.text ?? hour ?? 'does not fill up at the rate of the last hour';
}

/** It says something: a history of less than a day, of a pool that is not about to be full, does not. */
export function isForetold(pool: Coming): boolean {
  return pool.forecast?.trend !== 'too_little' || (pool.full_in_seconds ?? Infinity) < DAY;
}

/** The pool that a LUN is made in: the one that is chosen; else, as the daemon has it, the one called default, or the only one. */
export function poolFor(pools: Pool[], chosen: string): Pool | undefined {
  return pools.find((pool) => pool.name === (chosen || 'default')) ?? (pools.length === 1 ? pools[0] : undefined);
}
