// The node's lists, asked for while somebody shows them, and when something has changed.

import { get } from '../api/client.ts';
import { Refused } from '../api/problem.ts';
import type { Alert, Disk, Grant, Host, Job, Lun, NodeEvent, Pool, Refusal, Session, Status, Target } from '../api/types.ts';
import type { Others } from './rates.ts';

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
  // They change with a generation only, which has them asked for anew.
  grants: 300_000,
  disks: 30_000,
  jobs: 3_000,
};
/** The same while the stream says what happens: the status is asked for with each event, and in between for what is none. */
const STATUS_STREAMED_MS = 8_000;
/** So long after a question that failed it is asked again. */
const FAILED_MS = 4_000;
/** So long all LUNs are not asked for again; those that did something are, for so long after it. */
const ALL_LUNS_MS = 300_000;
const MOVED_MS = 120_000;
/** Of more than so many that did something all are asked for. */
const MOVED_MAX = 64;
/** While a job runs its figures change. */
const RUNNING_MS = 1_500;
/** Lists that are for whoever has logged in. */
const FOR_USERS: ListName[] = ['events', 'alerts', 'jobs', 'disks'];
/** So many of the newest events are asked for. */
export const EVENTS_NEWEST = 200;
/** Counters of LUNs come with the stream; of a list of 10,000 they are two thirds. */
const PATHS: Partial<Record<ListName, string>> = { events: `events/log?limit=${EVENTS_NEWEST}`, luns: 'luns?without=ops' };
const NONE_MOVED = new Map<string, number>();
/** What a new generation of the objects changes. */
const OBJECTS: ListName[] = ['luns', 'targets', 'hosts', 'grants'];
const EVENTS_KEPT = 500;
const ENDED_KEPT = 1_000;

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

  /** Sessions that are gone, as they were last seen. */
  readonly ended = new Map<number, Session>();
  /** Lists that this daemon does not have. */
  private readonly absent = new Set<ListName>();
  private readonly shown = new Map<ListName, number>([['status', 1]]);
  private readonly due = new Map<ListName, number>();
  private readonly asking = new Set<ListName>();
  /** LUNs that did something, and when: their rows are old, and no others. */
  private moved = NONE_MOVED;
  private allLunsDue = 0;
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

  turn(now: number, streamed = false): void {
    for (const [name, shown] of this.shown) {
      if (shown < 1 || this.absent.has(name) || this.asking.has(name) || now < (this.due.get(name) ?? 0)) continue;
      this.due.set(name, now + this.age(name, streamed));
      this.asking.add(name);
      void this.ask(name).finally(() => this.asking.delete(name));
    }
  }

  private age(name: ListName, streamed: boolean): number {
    if (name === 'status' && streamed) return STATUS_STREAMED_MS;
    return name === 'jobs' && this.jobs?.some((job) => job.state === 'running') ? RUNNING_MS : AGE[name];
  }

  /** What the stream has shown of sessions and LUNs. */
  others({ sessions, luns, moved }: Others): void {
    if (sessions) this.refresh('status', 'sessions', 'hosts', 'targets');
    if (luns) this.refresh('status', 'luns');
    this.move(...moved);
  }

  private move(...names: string[]): void {
    if (this.moved === NONE_MOVED && names.length > 0) this.moved = new Map();
    for (const name of names) this.moved.set(name, Date.now());
  }

  /** All that is shown is asked for anew. */
  refresh(...names: ListName[]): void {
    if (names.length === 0) {
      this.due.clear();
      this.absent.clear();
    }
    if (names.length === 0 || names.includes('luns')) this.allLunsDue = 0;
    for (const name of names) this.due.delete(name);
  }

  /** An event of the node: what it is about has changed. */
  happened(event: NodeEvent): void {
    if (!this.events?.some((known) => known.id === event.id)) {
      this.events = [event, ...(this.events ?? [])].slice(0, EVENTS_KEPT);
    }
    const kind = event.object?.kind;
    const all = Object.keys(AGE) as ListName[];
    // A LUN that came or went is another generation, with which all are asked for.
    if (kind === 'lun') {
      this.move(event.object?.name ?? '');
      this.due.delete('luns');
    }
    this.refresh('status', ...all.filter((name) => name === `${kind}s` && name !== 'luns'));
    if (kind === 'host') this.refresh('sessions');
    if (kind === 'initiator') this.refresh('refusals', 'sessions');
    if (kind === 'node') this.refresh(...OBJECTS);
  }

  private async ask<N extends ListName>(name: N): Promise<void> {
    try {
      if (name === 'luns') this.luns = await this.askLuns(Date.now());
      else this.take(name, await get<Known[N]>(PATHS[name] ?? name));
    } catch (error) {
      const status = error instanceof Refused ? error.problem.status : 0;
      // What nobody could answer is soon asked again, however old it may become.
      this.due.set(name, Math.min(this.due.get(name) ?? 0, Date.now() + FAILED_MS));
      if (status === 404 || (status === 401 && FOR_USERS.includes(name))) this.absent.add(name);
    }
  }

  /** All of them, or only those whose rows are old. */
  private async askLuns(now: number): Promise<Lun[]> {
    for (const [name, at] of this.moved) if (now - at > MOVED_MS) this.moved.delete(name);
    if (this.luns && now < this.allLunsDue && this.moved.size <= MOVED_MAX) {
      if (this.moved.size === 0) return this.luns;
      const names = [...this.moved.keys()].map((name) => `&name=${encodeURIComponent(name)}`);
      const rows = await get<Lun[]>(`${PATHS.luns}${names.join('')}`);
      const fresh = new Map(rows.map((lun) => [lun.name, lun]));
      return this.luns.map((lun) => (lun.state === 'removed' ? lun : (fresh.get(lun.name) ?? lun)));
    }
    this.allLunsDue = now + ALL_LUNS_MS;
    try {
      const luns = await get<Lun[]>(PATHS.luns ?? 'luns');
      // Deleted LUNs, which can be restored, are a list of their own.
      return [...luns, ...(await get<Lun[]>('luns?removed=true&without=ops'))];
    } catch (error) {
      this.allLunsDue = 0;
      throw error;
    }
  }

  private keep(now: Session[]): void {
    const ids = new Set(now.map((session) => session.id));
    for (const session of this.sessions ?? []) if (!ids.has(session.id)) this.ended.set(session.id, session);
    for (const id of this.ended.keys()) if (this.ended.size > ENDED_KEPT) this.ended.delete(id);
  }

  private take<N extends ListName>(name: N, answer: Known[N]): void {
    if (name === 'status') {
      const status = answer as Status;
      if (this.status && this.status.generation !== status.generation) this.refresh(...OBJECTS);
      this.status = status;
    } else if (name === 'events') {
      this.events = [...(answer as NodeEvent[])].sort((a, b) => b.id - a.id);
    } else {
      if (name === 'sessions') this.keep(answer as Session[]);
      Object.assign(this, { [name]: answer });
    }
  }
}

export const lists = new Lists();
