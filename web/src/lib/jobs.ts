// Work that takes long: its words, its figures, where it leads. Pure.

import type { Job } from '../api/types.ts';
import { cli, type Change } from './changes.ts';
import { bytes, plural, seconds } from './format.ts';
import type { State } from './verdict.ts';

const KINDS: Record<string, string> = {
  scrub: 'Scrub', lun_create: 'Making LUN', lun_grow: 'Growing LUN', bench: 'Bench', lab: 'Lab',
};

export function jobName(job: Job): string {
  return `${KINDS[job.kind] ?? job.kind} ${job.object}`;
}

/** The page of what it is about. */
export function jobHref(job: Job): string | undefined {
  if (job.kind === 'bench') return `/bench/${job.link?.split('/').at(-1) ?? ''}`;
  if (job.kind === 'lab') return '/lab';
  return ['scrub', 'lun_create', 'lun_grow'].includes(job.kind) ? `/luns/${encodeURIComponent(job.object)}` : undefined;
}

export function jobState(job: Job): { state: State; word: string } {
  if (job.state === 'running') return { state: 'good', word: job.cancelling ? 'is being cancelled' : 'running' };
  const states: Record<Exclude<Job['state'], 'running'>, State> = { finished: 'good', failed: 'bad', interrupted: 'bad', cancelled: 'off' };
  return { state: states[job.state], word: job.state };
}

function amount(job: Job, value: number): string {
  if (job.unit === 'bytes') return bytes(value);
  return job.unit === 'seconds' ? seconds(value) : plural(value, job.unit.replace(/s$/, ''));
}

/** How far it is, how fast, and how long it still takes. */
export function progress(job: Job): string {
  const parts = [job.total > 0 ? `${amount(job, job.done)} of ${amount(job, job.total)}` : amount(job, job.done)];
  if (job.state === 'running' && job.rate > 0 && job.unit === 'bytes') parts.push(`${bytes(job.rate)}/s`);
  if (job.seconds_left !== undefined) parts.push(`${seconds(job.seconds_left)} left`);
  return parts.join(', ');
}

/** What runs first, the newest before older ones. */
export function jobsInOrder(jobs: Job[]): Job[] {
  return [...jobs].sort((a, b) => Number(b.state === 'running') - Number(a.state === 'running') || b.id - a.id);
}

/** What is left where a job of this kind is cancelled; where something goes, its name is typed. */
const CANCELLED: Record<string, (job: Job) => Pick<Change, 'typed' | 'explain'>> = {
  scrub: () => ({ explain: 'How far it is, is kept: it goes on there when it is started again.' }),
  bench: () => ({ explain: 'What was measured until then is kept.' }),
  lab: (job) => ({ typed: job.object, explain: 'Its load ends, and its namespaces go. Nothing else of this machine is touched.' }),
};

export function cancelJob(job: Job): Change {
  return {
    title: `Cancel job ${job.id}`,
    verb: 'Cancel it',
    method: 'POST',
    path: `jobs/${job.id}/cancel`,
    cli: cli('job', 'cancel', String(job.id)),
    plans: false,
    ...CANCELLED[job.kind]?.(job) ?? { typed: job.object, explain: `It stops where it is, and what it made of ${job.object} is undone.` },
  };
}

/** What was answered is a job that has begun, not the end of the work. */
export function begun(answer: unknown): Job | undefined {
  const job = answer as Partial<Job> | undefined;
  return job?.state === 'running' && typeof job.percent === 'number' && typeof job.kind === 'string' ? (answer as Job) : undefined;
}
