// A part of the past that somebody has chosen, as it stands in the address: `between=1764258000-1764258600`. Pure.

import { moment, spanWord } from './format.ts';

export type Between = [from: number, to: number];

/** A shorter one has too few points, in seconds. */
const SHORTEST = 10;

export function betweenOf(text: string): Between | undefined {
  const found = /^(\d{9,11})-(\d{9,11})$/.exec(text);
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return to - from >= SHORTEST ? [from, to] : undefined;
}

/** Of two moments, whichever was chosen first; `undefined` where they are too near to each other. */
export function betweenText(one: number, other: number): string | undefined {
  const text = `${Math.floor(Math.min(one, other))}-${Math.ceil(Math.max(one, other))}`;
  return betweenOf(text) && text;
}

const word = (at: number) => moment(new Date(at * 1000).toISOString());

/** Of what time something is: `the last 5 min`, or from when to when. */
export function timeSaid(span: number, between?: Between): string {
  return between ? `the time from ${word(between[0])} to ${word(between[1])}` : `the last ${spanWord(span)}`;
}

/** Of values with their times those of a part, its end left out. */
export function within<Value>(times: number[], values: Value[], [from, to]: Between): Value[] {
  return values.filter((_, at) => (times[at] ?? 0) >= from && (times[at] ?? 0) < to);
}
