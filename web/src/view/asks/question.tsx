// Questions of the model that wait for the user: one at a time.
import { useState } from "preact/hooks";
import { answerQuestion, rejectQuestion } from "../../state/actions";
import { panel } from "../../state/ui";
import type { Question, QuestionRequest } from "../../wire/types";
import { Markdown } from "../markdown";
import { AskFrame, type Choice } from "./frame";

interface FieldProps {
  question: Question;
  name: string;
  chosen: readonly string[];
  onToggle: (label: string) => void;
  onOwn: (text: string) => void;
}

const ownOf = (question: Question, chosen: readonly string[]): string => chosen.find((label) => question.options.every((option) => option.label !== label)) ?? "";

function QuestionField({ question, name, chosen, onToggle, onOwn }: FieldProps) {
  const { options } = question;
  return (
    <fieldset class="question">
      <legend>{question.question}</legend>
      {question.document && (
        <div class="ask-document" tabindex={0} role="document" aria-label={question.document.path}>
          <Markdown text={question.document.text} />
        </div>
      )}
      {options.length > 1 && <p class="quiet">{question.multiple ? "Choose one or more." : "Choose one."}</p>}
      {options.map((option, index) => (
        <label key={option.label} class="choice">
          <input type={question.multiple ? "checkbox" : "radio"} name={name} checked={chosen.includes(option.label)} onChange={() => onToggle(option.label)} />
          <span>
            {option.label}
            {option.description && <small>{option.description}</small>}
          </span>
          {index < 9 && <kbd>{index + 1}</kbd>}
        </label>
      ))}
      {question.custom !== false && <input class="field" type="text" aria-label={`Another answer to: ${question.question}`} placeholder={options.length > 0 ? "Another answer" : "Your answer"} value={ownOf(question, chosen)} onInput={(event) => onOwn(event.currentTarget.value)} />}
    </fieldset>
  );
}

export function QuestionView({ request, more }: { request: QuestionRequest; more: number }) {
  const { questions } = request;
  const [answers, setAnswers] = useState<string[][]>(questions.map(() => []));
  const [at, setAt] = useState(0);
  const [isSent, setSent] = useState(false);
  const question = questions[at]!;
  const chosen = answers[at]!;
  const own = ownOf(question, chosen);
  const set = (labels: string[]): void => setAnswers(answers.map((old, index) => (index === at ? labels : old)));
  const toggle = (label: string): void => {
    if (!question.multiple) set([label]);
    else set(chosen.includes(label) ? chosen.filter((each) => each !== label) : [...chosen, label]);
  };
  const setOwn = (text: string): void => set([...(question.multiple ? chosen.filter((each) => each !== own) : []), ...(text ? [text] : [])]);
  const isLast = at === questions.length - 1;
  const isAnswered = chosen.some((label) => label.trim());
  const goOn = (): void => {
    if (!isAnswered) return;
    if (!isLast) return setAt(at + 1);
    setSent(true);
    void answerQuestion(request, answers).then((isDone) => isDone || setSent(false));
  };
  const choices: Choice[] = [
    { label: isLast ? "Answer" : "Next", kind: "primary", isOff: !isAnswered, act: goOn },
    ...(at > 0 ? [{ label: "Back", act: () => setAt(at - 1) }] : []),
    { label: "Dismiss", act: () => void rejectQuestion(request) },
    ...(questions[0]?.header === "Plan" ? [{ label: "Comment on its lines", kind: "link" as const, act: () => void (panel.value = "review") }] : []),
  ];
  const keys = Object.fromEntries(question.options.slice(0, 9).map((option, index) => [String(index + 1), () => toggle(option.label)]));
  return (
    <AskFrame shown={`${request.id} ${at}`} label="Question" choices={choices} keys={keys} isBusy={isSent} onEnter={goOn}>
      {(questions.length > 1 || more > 0) && (
        <p class="ask-count quiet">
          {questions.length > 1 && `Question ${at + 1} of ${questions.length}`}
          {more > 0 && ` ${more} more ${more === 1 ? "waits" : "wait"}`}
        </p>
      )}
      <QuestionField key={at} question={question} name={`question-${at}`} chosen={chosen} onToggle={toggle} onOwn={setOwn} />
    </AskFrame>
  );
}
