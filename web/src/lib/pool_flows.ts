// What flows from a pool to each of the disks and members below it, as far as that is counted. Pure.

import type { Lun, Pool } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import { grouped } from './grouped.ts';
import type { Below } from './lying.ts';

/** Bytes a second of a LUN. */
export function moved(lun: string, moment: Moment | undefined): number {
  const rates = moment?.luns.get(lun);
  return rates ? rates.readBytes + rates.writeBytes : 0;
}

/** LUNs that move something now, by the pool they lie in. */
export function busyByPool(luns: Lun[], moment: Moment | undefined): Map<string, Lun[]> {
  return grouped(luns.filter((lun) => lun.pool !== undefined && moved(lun.name, moment) > 0), (lun) => lun.pool ?? '');
}

/**
 * Bytes a second by part; nothing of those where it is not known. The node counts what LUNs move, and not what each disk
 * gets of it: that is known of a part that has all of a pool, or all of every busy LUN that has something there.
 */
export function poolFlows(pool: Pool, parts: Below[], busy: Lun[], moment: Moment | undefined): Map<string, number | undefined> {
  const destages = (pool.journal?.destaged_bytes_per_second ?? 0) > 0;
  const isSplit = parts.some((part) => part.journal) && parts.length > 1;
  return new Map(parts.map((part) => [part.id, flowTo(part)]));

  function flowTo(part: Below): number | undefined {
    if (!busy.length && !(isSplit && destages)) return 0;
    if (parts.length === 1) return sum(busy);
    // What is written goes to the journal first, and to its own place later.
    if (isSplit) return undefined;
    const touching = part.members.length ? busy.filter((lun) => !lun.members?.length || lun.members.some((number) => part.members.includes(number))) : busy;
    const isWhole = (lun: Lun) => lun.members?.length && lun.members.every((number) => part.members.includes(number));
    return touching.every(isWhole) ? sum(touching) : undefined;
  }

  function sum(luns: Lun[]): number {
    return luns.reduce((all, lun) => all + moved(lun.name, moment), 0);
  }
}
