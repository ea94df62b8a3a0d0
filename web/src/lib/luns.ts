// Rows of the table of LUNs. Pure.

import type { Lun } from '../api/types.ts';
import type { Moment, Rates } from '../live/rates.ts';
import type { Column } from './columns.ts';
import { count, bytes as inBytes, latency, plural, rate, seconds, sizeOf } from './format.ts';
import type { State } from './verdict.ts';

export interface LunRow {
  lun: Lun;
  size: number;
  /** What it does now: asked for only where that is shown, or sorted by. */
  rates: () => Rates | undefined;
}

export function lunState(lun: Lun): State {
  if (lun.state === 'online') return troubleOf(lun) ? 'bad' : 'good';
  return lun.state === 'offline' ? 'bad' : 'off';
}

export function lunWord(lun: Lun): string {
  return lun.state === 'removed' ? 'deleted' : lun.state;
}

/** What is wrong with a LUN: in a word, and why. */
interface Trouble {
  word: 'offline' | 'does not answer' | 'not destaged' | 'damaged';
  why: string;
}

/** What is known of its data, wherever that comes from: its journal, its checksums, its last scrub. */
function damageOf(lun: Lun): string | undefined {
  if (lun.journal?.lost_blocks) return `${lun.journal.lost_blocks} blocks are lost in the journal`;
  if (lun.checksums?.bad_blocks) return `${lun.checksums.bad_blocks} blocks are bad`;
  return lun.checksums?.broken ?? lun.findings?.[0];
}

function troubleOf(lun: Lun): Trouble | undefined {
  if (lun.state === 'removed') return undefined;
  if (lun.state === 'offline') return { word: 'offline', why: lun.reason ?? 'offline' };
  if (lun.stalled) return { word: 'does not answer', why: `its storage has not answered for ${seconds(lun.stalled.seconds)}` };
  const damage = damageOf(lun);
  if (damage) return { word: 'damaged', why: damage };
  return lun.journal?.destage_error ? { word: 'not destaged', why: `not destaged: ${lun.journal.destage_error}` } : undefined;
}

/** Of a LUN that needs attention: why. */
export const lunTrouble = (lun: Lun): string | undefined => troubleOf(lun)?.why;

/** The same where there is room for a word only. */
export const troubleWord = (lun: Lun): string | undefined => troubleOf(lun)?.word;

export const lunSaid = (lun: Lun): string => lunTrouble(lun) ?? lunWord(lun);

/** What is known of the data of all of them, for the screen about it. */
export function integritySaid(luns: Lun[]): [State, string] {
  const damaged = luns.filter(damageOf);
  if (damaged.length) return ['bad', `${plural(damaged.length, 'LUN has', 'LUNs have')} known damage: ${named(damaged)}`];
  const silent = luns.filter((lun) => lun.state === 'offline' || lun.stalled);
  if (silent.length) return ['warn', `No damage is known, and ${plural(silent.length, 'LUN', 'LUNs')} cannot be read: ${named(silent)}`];
  return ['good', 'No damage is known'];
}

/** Those of which something is known come first. */
export const worstFirst = (a: Lun, b: Lun): number => Number(lunTrouble(b) !== undefined) - Number(lunTrouble(a) !== undefined);

const NAMED = 4;
const named = (luns: Lun[]) => `${luns.slice(0, NAMED).map((lun) => lun.name).join(', ')}${luns.length > NAMED ? ' …' : ''}`;

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
  { key: 'state', title: 'State', value: (row) => lunSaid(row.lun) },
  { key: 'size', title: 'Size', right: true, value: (row) => row.size, text: (row) => inBytes(row.size) },
  { key: 'taken', title: 'Taken', right: true, wide: true, value: (row) => row.lun.allocated, text: (row) => (row.lun.allocated === undefined ? '–' : inBytes(row.lun.allocated)) },
  { key: 'pool', title: 'Pool', wide: true, value: (row) => row.lun.pool ?? row.lun.backing },
  { key: 'grants', title: 'Hosts', right: true, wide: true, value: (row) => row.lun.grants.length },
  { key: 'iops', title: 'IOPS', right: true, value: iopsOf, text: (row) => shownAs(iopsOf(row), count) },
  { key: 'bytes', title: 'Throughput', right: true, wide: true, value: bytesOf, text: (row) => shownAs(bytesOf(row), rate), below: (row) => (bytesOf(row) ? rate(bytesOf(row)) : undefined) },
  { key: 'p99', title: 'p99', right: true, wide: true, value: p99Of, text: (row) => latency(p99Of(row)), below: (row) => (p99Of(row) ? `p99 ${latency(p99Of(row))}` : undefined) },
];
