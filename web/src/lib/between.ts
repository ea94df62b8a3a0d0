// A part of the past that somebody has chosen, as it stands in the address: `between=1764258000-1764258600`. Pure.

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
