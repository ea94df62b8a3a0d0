// Work that takes long.

export interface Job {
  id: number;
  kind: string;
  object: string;
  state: 'running' | 'finished' | 'failed' | 'cancelled' | 'interrupted';
  cancelling: boolean;
  unit: string;
  done: number;
  total: number;
  percent: number;
  rate: number;
  seconds_left?: number;
  started: string;
  ended?: string;
  by: string;
  reason?: string;
  link?: string;
  log: { at: string; text: string }[];
}
