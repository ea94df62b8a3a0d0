// Rows of the table of LUNs. Pure.

import type { Lun } from '../api/types.ts';
import type { Moment, Rates } from '../live/rates.ts';
import type { Column } from './columns.ts';
import { count, bytes as inBytes, latency, rate, sizeOf } from './format.ts';
import type { State } from './verdict.ts';

export interface LunRow {
  lun: Lun;
  size: number;
  /** What it does now: asked for only where that is shown, or sorted by. */
  rates: () => Rates | undefined;
}

export function lunState(lun: Lun): State {
  if (lun.state === 'online') return 'good';
  return lun.state === 'offline' ? 'bad' : 'off';
}

export function lunWord(lun: Lun): string {
  return lun.state === 'removed' ? 'deleted' : lun.state;
}

/** Of a LUN that needs attention: why. */
export function lunTrouble(lun: Lun): string | undefined {
  if (lun.state === 'offline') return lun.reason ?? 'offline';
  if (lun.journal?.destage_error) return `not destaged: ${lun.journal.destage_error}`;
  if (lun.journal?.lost_blocks) return `${lun.journal.lost_blocks} blocks are lost in the journal`;
  if (lun.checksums?.bad_blocks) return `${lun.checksums.bad_blocks} blocks are bad`;
  return lun.checksums?.broken;
}

export const SHOWS = ['all', 'online', 'offline', 'deleted'] as const;

export function rows(luns: Lun[], moment: () => Moment | undefined, text: string, shows: string): LunRow[] {
  const wanted = text.trim().toLowerCase();
  const some = luns.filter((lun) => {
    const word = lunWord(lun);
    if (shows === 'online' || shows === 'offline' || shows === 'deleted' ? word !== shows : word === 'deleted') return false;
    return !wanted || [lun.name, lun.serial, lun.pool ?? '', ...lun.grants].some((one) => one.toLowerCase().includes(wanted));
  });
  return some.map((lun) => ({ lun, size: sizeOf(lun.size), rates: () => moment()?.luns.get(lun.name) }));
}

function iopsOf({ rates }: LunRow): number {
  const now = rates();
  return now ? now.readIops + now.writeIops : 0;
}

function bytesOf({ rates }: LunRow): number {
  const now = rates();
  return now ? now.readBytes + now.writeBytes : 0;
}

function p99Of({ rates }: LunRow): number | undefined {
  const now = rates();
  return now && (Math.max(now.readP99 ?? 0, now.writeP99 ?? 0) || undefined);
}

function shownAs(value: number, text: (value: number) => string): string {
  return value ? text(value) : '–';
}

export const COLUMNS: Column<LunRow>[] = [
  { key: 'name', title: 'LUN', value: (row) => row.lun.name },
  { key: 'state', title: 'State', value: (row) => lunTrouble(row.lun) ?? lunWord(row.lun) },
  { key: 'size', title: 'Size', right: true, value: (row) => row.size, text: (row) => inBytes(row.size) },
  { key: 'taken', title: 'Taken', right: true, wide: true, value: (row) => row.lun.allocated, text: (row) => (row.lun.allocated === undefined ? '–' : inBytes(row.lun.allocated)) },
  { key: 'pool', title: 'Pool', wide: true, value: (row) => row.lun.pool ?? row.lun.backing },
  { key: 'grants', title: 'Hosts', right: true, wide: true, value: (row) => row.lun.grants.length },
  { key: 'iops', title: 'IOPS', right: true, value: iopsOf, text: (row) => shownAs(iopsOf(row), count) },
  { key: 'bytes', title: 'Throughput', right: true, wide: true, value: bytesOf, text: (row) => shownAs(bytesOf(row), rate), below: (row) => (bytesOf(row) ? rate(bytesOf(row)) : undefined) },
  { key: 'p99', title: 'p99', right: true, wide: true, value: p99Of, text: (row) => latency(p99Of(row)), below: (row) => (p99Of(row) ? `p99 ${latency(p99Of(row))}` : undefined) },
];
