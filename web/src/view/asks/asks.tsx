// What waits for the user in the session on the screen and in its subagents: one thing at a time.
import { permissions, place, questions, rootOf } from "../../state/store";
import { Permission } from "./permission";
import { QuestionView } from "./question";

/** The first request, and how many follow. */
export function Asks() {
  const root = rootOf(place.value.sessionID);
  const isHere = (request: { sessionID: string }): boolean => !!root && rootOf(request.sessionID) === root;
  const asked = permissions.value.filter(isHere);
  const questioned = questions.value.filter(isHere);
  const more = asked.length + questioned.length - 1;
  if (more < 0) return null;
  return <div class="asks">{asked[0] ? <Permission key={asked[0].id} request={asked[0]} more={more} /> : <QuestionView key={questioned[0]!.id} request={questioned[0]!} more={more} />}</div>;
}
