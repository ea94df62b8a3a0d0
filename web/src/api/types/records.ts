// What happened, and who changed what.

export interface NodeEvent {
  id: number;
  time: string;
  code: string;
  severity: string;
  object: { kind: string; name: string };
  message: string;
  fields?: object;
}

export interface Audited {
  id: number;
  time: string;
  /** The same in the words that the command line shows as well. */
  words: { did: string; about: string; from: string; result: string };
  who: string;
  via: string;
  from?: string;
  method: string;
  path: string;
  object?: { kind: string; name: string };
  before?: unknown;
  after?: unknown;
  asked?: unknown;
  status: number;
  code?: string;
  /** Of work that takes long, which has two entries: that it began, and how it ended. */
  job?: number;
  bad_token?: boolean;
  request_id: string;
}
