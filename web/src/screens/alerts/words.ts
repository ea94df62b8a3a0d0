import { seconds } from '../../lib/format.ts';

/** How long something lasts before it counts. */
export function spanWord(value: number): string {
  return value === 0 ? 'at once' : `for ${seconds(value).replace(/ 0 (s|min|h)$/, '')}`;
}
