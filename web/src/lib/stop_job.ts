// Which job somebody is asked about before it is cancelled stands in the address, as with every dialog.

import type { Job } from '../api/types.ts';
import { router } from './router.svelte.ts';

export function jobToStop(jobs: Job[]): Job | undefined {
  return router.get('do') === 'stop' ? jobs.find((job) => String(job.id) === router.get('job')) : undefined;
}

/** Asks; without one nobody is asked any more. */
export function stopJob(job?: Job): void {
  router.set(job ? { do: 'stop', job: String(job.id) } : { do: undefined, job: undefined });
}
