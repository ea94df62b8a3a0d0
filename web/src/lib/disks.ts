// What disks and bays say of themselves, in words. Pure.

import type { Bay, Disk, DiskFacts, DiskVerdict } from '../api/types.ts';
import { cli, seg, type Change } from './changes.ts';
import { plural } from './format.ts';
import type { State } from './verdict.ts';

/** As bad as its alert: failing is critical, to be replaced soon a warning. */
const STATES: Record<DiskVerdict, { state: State; word: string }> = {
  well: { state: 'good', word: 'well' },
  watch: { state: 'warn', word: 'watch' },
  replace_soon: { state: 'warn', word: 'replace soon' },
  failing: { state: 'bad', word: 'failing' },
  unknown: { state: 'off', word: 'unknown' },
};
const RANK: DiskVerdict[] = ['failing', 'replace_soon', 'watch', 'unknown', 'well'];

const SMART: Partial<Record<Disk['smart'], string>> = {
  waiting: 'not asked yet',
  asleep: 'asleep',
  unsupported: 'reports no health',
  not_permitted: 'may not be asked',
  no_smartctl: 'no smartctl',
  timed_out: 'did not answer',
  failed: 'not understood',
  missing: 'not there',
};

export function diskState(disk: Disk): { state: State; word: string } {
  const said = STATES[disk.health];
  const why = SMART[disk.smart];
  return { state: said.state, word: disk.health === 'unknown' && why ? `unknown: ${why}` : said.word };
}

export function verdictState(verdict: DiskVerdict): { state: State; word: string } {
  return STATES[verdict];
}

export const rankOf = (disk: Disk) => RANK.indexOf(disk.health);

/** What people call it: the system's name, else the serial number. */
export function diskName(disk: Disk): string {
  return disk.names[0] ?? disk.serial ?? disk.id;
}

/** As its finding is, where it has one: the same word and state wherever it is named. */
export function bayState(bay: Bay): { state: State; word: string } {
  const states: Record<Bay['state'], { state: State; word: string }> = {
    disk: { state: 'good', word: bay.finding ? 'faulty' : 'holds a disk' },
    empty: { state: 'off', word: 'empty' },
    dark: { state: 'bad', word: 'dark' },
    no_start: { state: 'bad', word: 'does not start' },
  };
  const said = states[bay.state];
  return bay.finding ? { ...said, state: STATES[bay.finding.verdict].state } : said;
}

/** Where the figures of a disk stand: a bar where there is an end to reach. */
export function wearOf(facts: DiskFacts): number | undefined {
  if (facts.wear_percent !== undefined) return facts.wear_percent / 100;
  return facts.spare_percent === undefined ? undefined : 1 - facts.spare_percent / 100;
}

const FIGURES: [keyof DiskFacts, string, (value: number) => string][] = [
  ['wear_percent', 'Of the writes that it was made for', (value) => `${value} %`],
  ['spare_percent', 'Spare blocks left', (value) => `${value} %`],
  ['spare_threshold_percent', 'Too few by its maker below', (value) => `${value} %`],
  ['reallocated_sectors', 'Reallocated sectors', String],
  ['pending_sectors', 'Sectors that it cannot read', String],
  ['offline_uncorrectable_sectors', 'Sectors that its own scan cannot read', String],
  ['uncorrected_errors', 'Errors that it could not correct', String],
  ['media_errors', 'Media errors', String],
  ['grown_defects', 'Grown defects', String],
  ['crc_errors', 'Transfers that came over damaged', String],
  ['temperature_celsius', 'Temperature', (value) => `${value} °C`],
  ['temperature_warning_celsius', 'Too warm to last from', (value) => `${value} °C`],
  ['temperature_critical_celsius', 'Damaged from', (value) => `${value} °C`],
  ['power_on_hours', 'Has had power for', (value) => `${plural(Math.round(value / 24), 'day')}`],
  ['power_cycles', 'Switched on', (value) => plural(value, 'time')],
  ['unsafe_shutdowns', 'Power went without a word', (value) => plural(value, 'time')],
  ['logged_errors', 'Errors in its own log', String],
];

const PER_WEEK: Record<string, string> = { wear_percent: ' %', spare_percent: ' %', temperature_celsius: ' °C' };

/** How much a figure changes in a week: `+0.25 % a week`. */
export function trendOf(trends: Disk['trends'], of: string): string {
  const change = trends?.find((one) => one.of === of)?.per_week_thousandths;
  if (change === undefined) return '';
  const size = Math.abs(change) / 1000;
  if (size < 0.01) return 'stays';
  return `${change < 0 ? '−' : '+'}${size.toFixed(2)}${PER_WEEK[of] ?? ''} a week`;
}

/** Its figures with their names and how they change, as far as it reports them. */
export function figures(facts: DiskFacts, trends?: Disk['trends']): [string, string, string][] {
  const out: [string, string, string][] = [];
  for (const [key, name, show] of FIGURES) {
    const value = facts[key];
    if (typeof value === 'number') out.push([name, show(value), trendOf(trends, key)]);
  }
  if (facts.passed !== undefined) out.unshift(['Its own check', facts.passed ? 'passed' : 'failed', '']);
  if (facts.self_test) out.push(['Last self-test', facts.self_test, '']);
  if (facts.failing_attributes?.length) out.push(['Below their limit now', facts.failing_attributes.join(', '), '']);
  if (facts.failed_before?.length) out.push(['Below their limit once', facts.failed_before.join(', '), '']);
  return out;
}

export function forgetDisk(id: string): Change {
  return {
    title: `Forget disk ${id}`,
    verb: 'Forget',
    method: 'DELETE',
    path: `disks/${seg(id)}`,
    cli: cli('disk', 'forget', id),
    plans: false,
    typed: id,
    explain: 'It was taken out on purpose: nobody misses it any more. If it comes back it is known again.',
  };
}
