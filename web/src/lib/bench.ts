// Runs of the bench: the request that a form makes, words, and their seconds as lines. Pure.

import type { BenchPlan, BenchRun, BenchSecond } from '../api/types.ts';
import { Ring } from '../live/ring.ts';
import { cli, type Change } from './changes.ts';
import { count, moment, notWhole, parseSize, plural, WHOLE, wholeOf } from './format.ts';
import type { State } from './verdict.ts';

export interface RunForm {
  name: string;
  of: 'lun' | 'memory' | 'url';
  lun: string;
  memory: string;
  url: string;
  block: string;
  access: 'random' | 'sequential';
  writePercent: number;
  threads: number;
  outstanding: number;
  seconds: number;
  warmUp: number;
  region: string;
  iopsMax: string;
  writeThrough: boolean;
  verify: boolean;
  fill: boolean;
  seed: number;
  from: string;
  policy: string;
  chapUser: string;
  chapSecret: string;
}

export function runForm(lun = ''): RunForm {
  return {
    name: '', of: 'lun', lun, memory: '256MiB', url: '', block: '4K', access: 'random', writePercent: 0, threads: 1, outstanding: 32, seconds: 10, warmUp: 2,
    region: '', iopsMax: '', writeThrough: false, verify: false, fill: false, seed: 0, from: '', policy: '', chapUser: '', chapSecret: '',
  };
}

/** What is missing or none; empty: it can be asked for. */
export function wrong(form: RunForm, secondsMax: number): string {
  const whole = (value: number, least: number, most: number) => Number.isInteger(value) && value >= least && value <= most;
  if (form.of === 'lun' && !form.lun) return 'Choose a LUN.';
  if (form.of === 'memory' && parseSize(form.memory) === undefined) return 'The size of the memory is none.';
  if (form.of === 'url' && !/^iscsi:\/\/[^/]+\/[^/]+\/\d+$/.test(form.url.trim())) return 'An address is iscsi://PORTAL/TARGET/LUN.';
  if (parseSize(form.block) === undefined) return 'The size of a command is none.';
  if (form.region && parseSize(form.region) === undefined) return 'The region is no size.';
  if (!whole(form.writePercent, 0, 100)) return 'Writes are 0 to 100 %.';
  if (!whole(form.seconds, 1, secondsMax)) return `It takes 1 to ${secondsMax} s.`;
  if (!whole(form.warmUp, 0, secondsMax) || !whole(form.threads, 1, 1_000) || !whole(form.outstanding, 1, 100_000)) return 'Threads, depth and warm-up are whole numbers.';
  if (notWhole(form.iopsMax)) return `IOPS at most: ${WHOLE.toLowerCase()}`;
  return '';
}

function body(form: RunForm): Record<string, unknown> {
  const paths = { ...(form.from.trim() ? { from: form.from.split(/[\s,]+/).filter(Boolean) } : {}), ...(form.policy ? { policy: form.policy } : {}) };
  return {
    ...(form.name ? { name: form.name } : {}),
    [form.of]: form.of === 'lun' ? form.lun : form.of === 'memory' ? form.memory : form.url.trim(),
    load: {
      block: form.block, access: form.access, write_percent: form.writePercent, threads: form.threads, outstanding: form.outstanding, seconds: form.seconds,
      warm_up_seconds: form.warmUp,
      ...(form.region ? { region: form.region } : {}),
      ...(form.iopsMax ? { iops_max: wholeOf(form.iopsMax) } : {}),
      ...(form.writeThrough ? { write_through: true } : {}),
      ...(form.verify ? { verify: true } : {}),
      ...(form.fill ? { fill: true } : {}),
      ...(form.seed ? { seed: form.seed } : {}),
    },
    ...(Object.keys(paths).length ? { paths } : {}),
    ...(form.of === 'url' && form.chapUser ? { chap_user: form.chapUser, chap_secret: form.chapSecret } : {}),
  };
}

/** `plan`: the daemon's, which knows the portal, and whether something is lost. Its line says by itself that this is meant. */
export function startRun(form: RunForm, plan?: Pick<BenchPlan, 'command_line' | 'confirm'>): Change {
  const wanted = body(form);
  return {
    title: 'A run of the bench',
    verb: 'Start',
    method: 'POST',
    path: `bench/runs${plan?.confirm === undefined ? '' : '?force=true'}`,
    body: wanted,
    shown: wanted['chap_secret'] === undefined ? wanted : { ...wanted, chap_secret: '…' },
    cli: plan?.command_line || 'causeway bench …',
    plans: false,
  };
}

export function runState(run: BenchRun): { state: State; word: string } {
  const states: Record<BenchRun['state'], State> = { running: 'good', finished: 'good', failed: 'bad', cancelled: 'off', interrupted: 'bad' };
  return { state: states[run.state], word: run.phase ? run.phase.replaceAll('_', ' ') : run.state };
}

export const runName = (run: BenchRun) => run.name || `${run.target}, run ${run.id}`;

export function cancelRun(run: BenchRun): Change {
  const path = `bench/runs/${run.id}/cancel`;
  return { title: `Cancel run ${run.id}`, verb: 'Cancel it', method: 'POST', path, cli: cli('api', 'POST', `/api/v1/${path}`), plans: false, explain: 'What was measured until then is kept.' };
}

export function forgetRun(run: BenchRun): Change {
  const path = `bench/runs/${run.id}`;
  const figures = run.summary ? `${count(run.summary.iops)} operations a second in ${plural(run.whole_seconds, 'second')}` : 'what it measured';
  return {
    title: `Forget run ${run.id}`, verb: 'Forget it', method: 'DELETE', path, cli: cli('api', 'DELETE', `/api/v1/${path}`), plans: false,
    typed: runName(run),
    explain: `Its result is gone: ${figures} of ${run.target}, begun ${moment(run.started)}. It cannot be compared with others any more. This cannot be undone.`,
  };
}

export const FIGURES = ['read_iops', 'write_iops', 'bytes_per_second', 'p50_us', 'p99_us', 'max_us'] as const;
/** Of seconds of which nothing counts, such as the warm-up: reads and writes are not known apart. */
const EARLY = ['early_iops', 'early_bytes'] as const;

/** The figures of a second that counts, or the others: charts of a run begin together, and show both. */
function figures(one: BenchSecond): (number | undefined)[] {
  const counts = one.read_iops !== undefined;
  const known = FIGURES.map((figure) => (counts || figure !== 'bytes_per_second' ? one[figure] : undefined));
  return [...known, ...(counts ? EARLY.map(() => undefined) : [one.iops, one.bytes_per_second])];
}

/** Seconds as lines of a chart; those of each path behind them. */
export function lines(started: string, seconds: BenchSecond[]): Ring {
  const paths = [...new Set(seconds.flatMap((one) => (one.paths ?? []).map((path) => path.path)))];
  const ring = new Ring([...FIGURES, ...EARLY, ...paths.map((path) => `path ${path}`)], Math.max(1, seconds.length));
  const begin = Date.parse(started) / 1000;
  for (const one of seconds) {
    const of = new Map((one.paths ?? []).map((path) => [path.path, path.iops]));
    ring.push(begin + one.second, [...figures(one), ...paths.map((path) => of.get(path))]);
  }
  return ring;
}

/** What is there with what came since: seconds are asked for from the last one on. */
export function joined(before: BenchSecond[], after: BenchSecond[]): BenchSecond[] {
  const last = before.at(-1)?.second ?? 0;
  return [...before, ...after.filter((one) => one.second > last)];
}
