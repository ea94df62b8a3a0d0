// What of a LUN somebody changes: only what differs is sent. Pure.

import type { Lun } from '../api/types.ts';
import { notWhole, parseSize, wholeOf } from './format.ts';

export const SHARES_MAX = 10_000;
const text = (value: unknown) => (value === undefined || value === 0 ? '' : String(value));

export const lunForm = (lun: Lun) => ({
  cache: lun.cache ?? '',
  integrity: lun.integrity ?? false,
  read_cache: text(lun.read_cache),
  iops: text(lun.limit?.iops),
  bytes_per_second: text(lun.limit?.bytes_per_second),
  shares: text(lun.shares),
  in_flight: text(lun.bytes_in_flight_max),
  aborted: lun.task_aborted_status ?? 'host',
});
export type LunForm = ReturnType<typeof lunForm>;

export function lunFields(form: LunForm, before: LunForm): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  // Empty takes a limit away; what is no number never does.
  const number = (typed: string) => (typed.trim() ? wholeOf(typed) : null);
  if (form.cache !== before.cache) out['cache'] = form.cache;
  if (form.integrity !== before.integrity) out['integrity'] = form.integrity;
  if (form.read_cache !== before.read_cache) out['read_cache'] = form.read_cache.trim() || 0;
  if (form.shares !== before.shares) out['shares'] = number(form.shares);
  if (form.in_flight !== before.in_flight) out['bytes_in_flight_max'] = form.in_flight.trim() || 0;
  if (form.aborted !== before.aborted) out['task_aborted_status'] = form.aborted;
  const limit: Record<string, unknown> = {};
  if (form.iops !== before.iops) limit['iops'] = number(form.iops);
  if (form.bytes_per_second !== before.bytes_per_second) limit['bytes_per_second'] = form.bytes_per_second.trim() || null;
  if (Object.keys(limit).length) out['limit'] = limit;
  return out;
}

/** By field, what is wrong with it; empty: nothing. */
export function lunWrong(form: LunForm) {
  const size = (typed: string) => (!typed.trim() || parseSize(typed) !== undefined ? '' : 'A size, such as 200M.');
  return {
    iops: notWhole(form.iops), shares: notWhole(form.shares, SHARES_MAX), read_cache: size(form.read_cache),
    bytes_per_second: size(form.bytes_per_second), in_flight: size(form.in_flight),
  };
}
