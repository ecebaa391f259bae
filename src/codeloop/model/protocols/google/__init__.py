"""The adapter for Google's generateContent, also for Gemini on Vertex AI."""
