// How a scrub stands, and how often it is asked for. Pure.

import type { Scrub } from '../api/types.ts';
import { rate, seconds } from './format.ts';
import type { State } from './verdict.ts';

export const RUNNING_MS = 3_000;
/** What does not run changes when somebody or the schedule begins it. */
const RESTING_MS = 30_000;

/** Milliseconds to the next question. */
export const scrubEvery = (scrub: Scrub | undefined): number => (scrub?.state === 'running' ? RUNNING_MS : RESTING_MS);

/** What `scrub.every_days` of node.toml says. */
export function daysSaid(value: string | undefined): string {
  if (value === undefined) return 'No schedule: LUNs are scrubbed when somebody asks.';
  return `Each LUN is scrubbed ${value === '1' ? 'every day' : `every ${value} days`} by itself, one after the other.`;
}

export function scrubSaid(scrub: Scrub | undefined): [State, string] {
  if (!scrub) return ['off', 'never scrubbed'];
  const found = scrub.unreadable_blocks + scrub.mismatched_blocks + scrub.map_pages + (scrub.metadata?.length ?? 0);
  if (found) return ['bad', `${found} findings`];
  if (scrub.state === 'running') {
    const left = scrub.seconds_left === undefined ? '' : `, ${seconds(scrub.seconds_left)} left`;
    return ['good', `${rate(scrub.bytes_per_second)}${left}${scrub.yields ? ', gives way to hosts' : ''}`];
  }
  if (scrub.state === 'given_up') return ['warn', `given up: ${scrub.reason ?? 'no reason is known'}`];
  return scrub.state === 'stopped' ? ['off', 'stopped'] : ['good', 'nothing found'];
}
