// How long ago a scrub has read all of each LUN. Pure.

import type { Lun } from '../api/types.ts';
import type { Column } from './columns.ts';
import { seconds, sizeOf } from './format.ts';
import { lunTrouble } from './luns.ts';
import type { State } from './verdict.ts';

export type Band = 'never' | 'overdue' | 'due' | 'fresh';
/** The worst first. */
export const BANDS: Band[] = ['never', 'overdue', 'due', 'fresh'];
/** How often each is read, where node.toml does not say. */
export const USUAL_DAYS = 30;
const DAY_MS = 86_400_000;

export interface Age {
  lun: Lun;
  /** In milliseconds; nothing: never. */
  age: number | undefined;
  band: Band;
}

/** Fresh until the schedule asks for the next one; overdue when it has asked twice. */
export function bandOf(age: number | undefined, days: number): Band {
  if (age === undefined) return 'never';
  if (age <= days * DAY_MS) return 'fresh';
  return age <= 2 * days * DAY_MS ? 'due' : 'overdue';
}

export const bandState: Record<Band, State> = { never: 'off', overdue: 'bad', due: 'warn', fresh: 'good' };

/** How the map draws them: not by colour alone. The longer ago, the larger; what never was is hollow. */
export const FORMS: Record<Band, { part: number; hollow?: boolean }> = { never: { part: 0.9, hollow: true }, overdue: { part: 1 }, due: { part: 0.7 }, fresh: { part: 0.45 } };

/**
 * As the table has it, with by how much it is late: without a schedule nothing is. Who has not logged in does not know
 * whether there is one.
 */
export function scheduleSaid({ age, band }: Age, days: number, hasSchedule: boolean | undefined): string {
  if (!hasSchedule) return band === 'never' && hasSchedule === false ? 'no schedule' : bandSaid(band, days);
  if (age === undefined) return 'due now';
  const late = age - days * DAY_MS;
  return late <= 0 ? bandSaid(band, days) : `${band === 'overdue' ? 'overdue by' : 'due for'} ${seconds(late / 1000)}`;
}

export function bandSaid(band: Band, days: number): string {
  const said: Record<Band, string> = { never: 'never', overdue: `over ${2 * days} days ago`, due: `${days} to ${2 * days} days ago`, fresh: days === 1 ? 'within a day' : `within ${days} days` };
  return said[band];
}

/** All that are served, the worst first: those that never were, then the oldest. */
export function ages(luns: Lun[], now: number, days: number, text = ''): Age[] {
  const wanted = text.trim().toLowerCase();
  const some = luns.filter((lun) => lun.state !== 'removed' && lun.name.toLowerCase().includes(wanted));
  const all = some.map((lun): Age => {
    const at = lun.verified === undefined ? NaN : Date.parse(lun.verified);
    const age = Number.isNaN(at) ? undefined : Math.max(0, now - at);
    return { lun, age, band: bandOf(age, days) };
  });
  return all.sort((a, b) => (b.age ?? Infinity) - (a.age ?? Infinity) || 0);
}

export function ageSaid(age: number | undefined): string {
  return age === undefined ? 'never' : `${seconds(age / 1000)} ago`;
}

export const COLUMNS: Column<Age>[] = [
  { key: 'lun', title: 'LUN', value: ({ lun }) => lun.name },
  // Never is older than anything.
  { key: 'age', title: 'Read whole', right: true, value: ({ age }) => (age === undefined ? Number.MAX_SAFE_INTEGER : Math.round(age / 1000)), text: ({ age }) => ageSaid(age) },
  { key: 'band', title: 'By the schedule', value: ({ band }) => band },
  { key: 'checksums', title: 'Checksums', wide: true, value: ({ lun }) => (lun.integrity ? 'yes' : 'no') },
  { key: 'size', title: 'Size', right: true, wide: true, value: ({ lun }) => sizeOf(lun.size) },
  { key: 'trouble', title: 'Known to be wrong', wide: true, value: ({ lun }) => lunTrouble(lun) ?? 'nothing' },
];
