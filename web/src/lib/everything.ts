// All of a log, page by page.

import { get } from '../api/client.ts';

const PAGE = 5_000;
/** So many entries are a file at most: what a browser can hold, and more than anybody reads. */
const MOST = 200_000;

/** `path`: with what is asked for, without page and size. */
export async function everything<T extends { id: number }>(path: string, ask: (path: string) => Promise<T[]> = get): Promise<T[]> {
  const all: T[] = [];
  const joint = path.includes('?') ? '&' : '?';
  for (let cursor = ''; all.length < MOST; cursor = `&cursor=${all.at(-1)?.id}`) {
    const page = await ask(`${path}${joint}limit=${PAGE}${cursor}`);
    all.push(...page);
    if (page.length < PAGE) break;
  }
  return all;
}
