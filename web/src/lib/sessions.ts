// Sessions as the slowest path is found among them. Pure.

import type { Grant, Session } from '../api/types.ts';
import type { Moment, SessionRates } from '../live/rates.ts';
import { address } from './nics.ts';

/** Which way a session goes: `eth0 (10.0.0.7) → 10.0.0.1:3260`. */
export function routeOf(session: Session): string {
  const from = address(session.from);
  return `${session.nic && session.nic.name !== from ? `${session.nic.name} (${from})` : from} → ${session.portal}`;
}

export interface Doing {
  session: Session;
  rates: SessionRates | undefined;
  /** In microseconds. */
  p99: number | undefined;
}

/** Those with the longest p99 first; then those that do most; those that do nothing last. */
export function slowestFirst(sessions: Session[], moment: Moment | undefined, p99: Map<number, number>): Doing[] {
  const all = sessions.map((session) => ({ session, rates: moment?.sessions.get(session.id), p99: p99.get(session.id) }));
  return all.sort((a, b) => (b.p99 ?? -1) - (a.p99 ?? -1) || (b.rates?.commands ?? 0) - (a.rates?.commands ?? 0) || a.session.id - b.session.id);
}

/** Sessions that have the LUN of a grant by this grant: another target's have it by another one. */
export function sessionsBy(grant: Grant, sessions: Session[]): Session[] {
  return sessions.filter((one) => one.host === grant.host && one.target === grant.target && one.luns.some(({ lun }) => lun === grant.lun));
}

/** Sessions that are named in an address: `3,17`. */
export function idsOf(text: string): number[] {
  return text.split(',').map(Number).filter((id) => Number.isSafeInteger(id) && id > 0);
}

/** How many rows of a list are shown: as many as the address says, a part at least. */
export function rowsOf(text: string, least: number): number {
  const wanted = Number(text);
  return Number.isSafeInteger(wanted) ? Math.max(least, wanted) : least;
}
