// The daemon's stream of events (SSE). Where it has none, the page asks again and again instead.

import { API } from '../api/client.ts';
import type { Activity, NodeEvent } from '../api/types.ts';

/** So long after its last message the stream is not relied on, in milliseconds. */
const SILENT_MS = 3_000;
/** So long after it was refused it is tried again. */
const AGAIN_MS = 60_000;

export interface Heard {
  activity(activity: Activity): void;
  event(event: NodeEvent): void;
}

export class Stream {
  private source: EventSource | undefined;
  private last = 0;
  private refused = -Infinity;
  private wanted = false;
  private readonly heard: Heard;

  constructor(heard: Heard) {
    this.heard = heard;
  }

  run(wanted: boolean): void {
    this.wanted = wanted;
    if (wanted) this.open();
    else this.close();
  }

  restart(): void {
    this.close();
    this.refused = -Infinity;
    if (this.wanted) this.open();
  }

  /** It brings the figures: nobody has to ask. */
  serves(now: number): boolean {
    if (this.wanted && !this.source && now - this.refused > AGAIN_MS) this.open();
    return now - this.last < SILENT_MS;
  }

  private open(): void {
    if (this.source || typeof EventSource === 'undefined') return;
    const source = new EventSource(`${API}stream?topics=activity,events`);
    this.source = source;
    source.addEventListener('activity', (message) => {
      this.last = Date.now();
      this.heard.activity(JSON.parse(message.data as string) as Activity);
    });
    source.addEventListener('event', (message) => {
      this.heard.event(JSON.parse(message.data as string) as NodeEvent);
    });
    source.onerror = () => {
      // The browser tries again by itself where the connection broke, and not where it was refused.
      if (source.readyState !== EventSource.CLOSED) return;
      this.close();
      this.refused = Date.now();
    };
  }

  private close(): void {
    this.source?.close();
    this.source = undefined;
    this.last = 0;
  }
}
