// Figures as people read them. Sizes and rates are binary, as everywhere in Causeway.

import type { Size } from '../api/types.ts';

/** The language of the page: numbers, days and the order of names are as it has them. */
export const LANGUAGE = 'en';
/** Times of 24 hours and days as in ISO 8601 have the same form in every language. */
const TIMES = 'en-GB', DAYS = 'en-CA';

/** Compares names, with the numbers in them. */
export const { compare } = new Intl.Collator(LANGUAGE, { numeric: true });
const numbers = new Intl.NumberFormat(LANGUAGE);

/** A whole number: `12,345`. */
export const whole = (value: number) => numbers.format(value);

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const SOLD = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
const SCALE: Record<string, number> = {
  '': 1, b: 1, k: 2 ** 10, kib: 2 ** 10, kb: 1e3, m: 2 ** 20, mib: 2 ** 20, mb: 1e6,
  g: 2 ** 30, gib: 2 ** 30, gb: 1e9, t: 2 ** 40, tib: 2 ** 40, tb: 1e12, p: 2 ** 50, pib: 2 ** 50, pb: 1e15,
};

/** `[number, unit]`, with up to three digits that mean something. */
export function binary(value: number): [string, string] {
  let at = 0;
  while (value >= 1023.5 && at < UNITS.length - 1) {
    value /= 1024;
    at++;
  }
  return [short(value), UNITS[at] ?? ''];
}

export function bytes(value: number): string {
  return binary(value).join(' ');
}

/** A disk's size as it is sold, in powers of ten: `12 TB`. */
export function asSold(value: number): string {
  const at = Math.max(0, Math.min(SOLD.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3 + 1e-9)));
  return `${short(value / 1000 ** at)} ${SOLD[at] ?? ''}`;
}

export function rate(value: number): string {
  return `${bytes(value)}/s`;
}

export const WHOLE = 'A whole number, such as 5000 or 5k.';

/** A whole number that somebody typed, from 1: `5000`, `5,000`, `5k`; `undefined` where it is none. */
export function wholeOf(text: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const found = /^(\d+|\d{1,3}(?:,\d{3})+)(k|m)?$/i.exec(text.trim());
  const value = Number(found?.[1]?.replaceAll(',', '')) * ({ k: 1e3, m: 1e6 }[found?.[2]?.toLowerCase() ?? ''] ?? 1);
  return value >= 1 && value <= most ? value : undefined;
}

/** What is wrong with a whole number that may be missing. */
export const notWhole = (text: string, most?: number) => (!text.trim() || wholeOf(text, most) !== undefined ? '' : WHOLE);

/** Bytes of a size as it stands in a document; `undefined` where it is none. */
export function parseSize(size: Size | undefined): number | undefined {
  if (typeof size === 'number') return size;
  const found = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(size ?? '');
  const scale = SCALE[found?.[2]?.toLowerCase() ?? '?'];
  if (!found?.[1] || scale === undefined) return undefined;
  const value = Number(found[1]) * scale;
  return Number.isInteger(value) ? value : undefined;
}

export function sizeOf(size: Size | undefined): number {
  return parseSize(size) ?? 0;
}

export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  if (value < 0.095) return value.toPrecision(1);
  if (value < 9.95) return trim(value.toFixed(1));
  return whole(Math.round(value));
}

function trim(text: string): string {
  return text.endsWith('.0') ? text.slice(0, -2) : text;
}

/** Operations a second: `950`, `12.4 k`. */
export function count(value: number): string {
  if (value < 9_999.5) return short(value);
  if (value < 999_500) return `${(value / 1e3).toPrecision(3)} k`;
  return `${(value / 1e6).toPrecision(3)} M`;
}

/** A time in microseconds, `[number, unit]`. */
export function micros(us: number | undefined): [string, string] {
  if (us === undefined || !Number.isFinite(us)) return ['–', ''];
  if (us < 999.5) return [short(us), 'µs'];
  if (us < 999_500) return [short(us / 1e3), 'ms'];
  return [short(us / 1e6), 's'];
}

export function latency(us: number | undefined): string {
  return micros(us).join(' ').trim();
}

export function seconds(value: number): string {
  const s = Math.round(value);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

const SPANS: [number, string][] = [[31_536_000, 'year'], [604_800, 'week'], [86_400, 'day'], [3_600, 'hour']];

/** Of a span that was chosen, behind `the last`: `5 min`, `hour`. */
export function spanWord(span: number): string {
  return SPANS.find(([of]) => of === span)?.[1] ?? (span % 60 === 0 ? `${span / 60} min` : seconds(span));
}

export function clock(time: number | string | Date): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? String(time) : at.toLocaleTimeString(TIMES);
}

/** `2026-11-27`. */
export const day = (at: Date) => at.toLocaleDateString(DAYS);

export function moment(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  return day(at) === day(new Date()) ? clock(at) : `${day(at)} ${clock(at)}`;
}

export function percent(part: number, whole: number): number {
  return whole > 0 ? (part / whole) * 100 : 0;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${whole(n)} ${n === 1 ? one : many}`;
}
