// Why a request was not done, as the API reports it (RFC 9457).

export interface Problem {
  title: string;
  status: number;
  detail: string;
  code?: string;
  cause?: string;
  hint?: string;
  faults?: { section: string; object: string; key: string; message: string }[];
  hits?: string[];
  losses?: string[];
  confirm?: string;
}

export class Refused extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

/** Nobody answered: the daemon or the way to it is down. */
export class Unreachable extends Error {}

/** What went wrong, whatever was thrown. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Refused) return thrown.problem;
  if (thrown instanceof Unreachable) {
    return {
      title: 'No answer',
      status: 0,
      detail: 'The daemon did not answer.',
      hint: 'Wait until the page is live again, or see on the machine: systemctl status causeway',
    };
  }
  return { title: 'Error in the page', status: 0, detail: String(thrown) };
}
