// What the node does, brought up to date by what changed. Pure.

import type { Activity, Core, LunActivity, SessionActivity } from '../api/types.ts';

/** What the stream sends after the first whole document. */
export interface ActivityChange {
  at_us: number;
  cores: Core[];
  luns: LunActivity[];
  sessions: SessionActivity[];
  luns_gone?: string[];
  sessions_gone?: number[];
}

/** `before` with `change`; what did not change is the same object as before. */
export function merged(before: Activity, change: ActivityChange): Activity {
  return {
    ...before,
    at_us: change.at_us,
    cores: change.cores,
    luns: list(before.luns, change.luns, change.luns_gone, (lun) => lun.name, compare),
    sessions: list(before.sessions, change.sessions, change.sessions_gone, (session) => session.id, (a, b) => a - b),
  };
}

/** As the daemon sorts names. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function list<T, K>(before: T[], changed: T[], gone: K[] | undefined, key: (one: T) => K, order: (a: K, b: K) => number): T[] {
  if (changed.length === 0 && !gone?.length) return before;
  const left = new Set(gone);
  const fresh = new Map(changed.map((one) => [key(one), one]));
  const kept = before.filter((one) => !left.has(key(one))).map((one) => {
    const newer = fresh.get(key(one));
    fresh.delete(key(one));
    return newer ?? one;
  });
  if (fresh.size === 0) return kept;
  return [...kept, ...fresh.values()].sort((a, b) => order(key(a), key(b)));
}
