"""The adapters for Google's generateContent and Interactions, also for Gemini on Vertex AI."""
