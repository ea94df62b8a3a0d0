// The node's lists, asked for while somebody shows them, and when something has changed.

import { get } from '../api/client.ts';
import { Refused } from '../api/problem.ts';
import type { Alert, Disk, Grant, Host, Job, Lun, NodeEvent, Pool, Refusal, Session, Status, Target } from '../api/types.ts';

interface Known {
  status: Status;
  luns: Lun[];
  targets: Target[];
  hosts: Host[];
  grants: Grant[];
  sessions: Session[];
  pools: Pool[];
  refusals: Refusal[];
  events: NodeEvent[];
  alerts: Alert[];
  disks: Disk[];
  jobs: Job[];
}

export type ListName = keyof Known;

/** How old each may become while it is shown, in milliseconds. */
const AGE: Record<ListName, number> = {
  status: 2_000,
  sessions: 2_000,
  pools: 3_000,
  refusals: 4_000,
  alerts: 4_000,
  events: 10_000,
  hosts: 10_000,
  luns: 15_000,
  targets: 15_000,
  grants: 15_000,
  disks: 30_000,
  jobs: 3_000,
};
/** While a job runs its figures change. */
const RUNNING_MS = 1_500;
/** Lists that are for whoever has logged in. */
const FOR_USERS: ListName[] = ['events', 'alerts', 'jobs', 'disks'];
/** Counters of LUNs come with the stream; of a list of 10,000 they are two thirds. */
const PATHS: Partial<Record<ListName, string>> = { events: 'events/log?limit=200', luns: 'luns?without=ops' };
/** What a new generation of the objects changes. */
const OBJECTS: ListName[] = ['luns', 'targets', 'hosts', 'grants'];
const EVENTS_KEPT = 500;

class Lists {
  status = $state.raw<Status>();
  luns = $state.raw<Lun[]>();
  targets = $state.raw<Target[]>();
  hosts = $state.raw<Host[]>();
  grants = $state.raw<Grant[]>();
  sessions = $state.raw<Session[]>();
  pools = $state.raw<Pool[]>();
  refusals = $state.raw<Refusal[]>();
  events = $state.raw<NodeEvent[]>();
  alerts = $state.raw<Alert[]>();
  disks = $state.raw<Disk[]>();
  jobs = $state.raw<Job[]>();

  /** Lists that this daemon does not have. */
  private readonly absent = new Set<ListName>();
  private readonly shown = new Map<ListName, number>([['status', 1]]);
  private readonly due = new Map<ListName, number>();
  private readonly asking = new Set<ListName>();
  private waiting = false;

  /** Keeps these fresh until what is returned is called: for `$effect`. */
  show(...names: ListName[]): () => void {
    for (const name of names) this.shown.set(name, (this.shown.get(name) ?? 0) + 1);
    this.soon();
    return () => {
      for (const name of names) this.shown.set(name, (this.shown.get(name) ?? 1) - 1);
    };
  }

  /** What a screen shows first is not asked for a turn later: once for all that it begins to show. */
  private soon(): void {
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => {
      this.waiting = false;
      this.turn(Date.now());
    });
  }

  turn(now: number): void {
    for (const [name, shown] of this.shown) {
      if (shown < 1 || this.absent.has(name) || this.asking.has(name) || now < (this.due.get(name) ?? 0)) continue;
      this.due.set(name, now + (name === 'jobs' && this.jobs?.some((job) => job.state === 'running') ? RUNNING_MS : AGE[name]));
      this.asking.add(name);
      void this.ask(name).finally(() => this.asking.delete(name));
    }
  }

  /** All that is shown is asked for anew. */
  refresh(...names: ListName[]): void {
    if (names.length === 0) {
      this.due.clear();
      this.absent.clear();
    }
    for (const name of names) this.due.delete(name);
  }

  /** An event of the node: what it is about has changed. */
  happened(event: NodeEvent): void {
    if (!this.events?.some((known) => known.id === event.id)) {
      this.events = [event, ...(this.events ?? [])].slice(0, EVENTS_KEPT);
    }
    const kind = event.object?.kind;
    const all = Object.keys(AGE) as ListName[];
    this.refresh('status', ...all.filter((name) => name === `${kind}s`));
    if (kind === 'host') this.refresh('sessions');
    if (kind === 'initiator') this.refresh('refusals', 'sessions');
    if (kind === 'node') this.refresh(...OBJECTS);
  }

  private async ask<N extends ListName>(name: N): Promise<void> {
    try {
      const answer = await get<Known[N]>(PATHS[name] ?? name);
      // Deleted LUNs, which can be restored, are a list of their own.
      if (name === 'luns') (answer as Lun[]).push(...(await get<Lun[]>('luns?removed=true&without=ops')));
      this.take(name, answer);
    } catch (error) {
      const status = error instanceof Refused ? error.problem.status : 0;
      if (status === 404 || (status === 401 && FOR_USERS.includes(name))) this.absent.add(name);
    }
  }

  private take<N extends ListName>(name: N, answer: Known[N]): void {
    if (name === 'status') {
      const status = answer as Status;
      if (this.status && this.status.generation !== status.generation) this.refresh(...OBJECTS);
      this.status = status;
    } else if (name === 'events') {
      this.events = [...(answer as NodeEvent[])].sort((a, b) => b.id - a.id);
    } else {
      Object.assign(this, { [name]: answer });
    }
  }
}

export const lists = new Lists();
